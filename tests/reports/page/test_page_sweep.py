"""The section of a sweep in a real browser: a picker of keys, rows and datasets."""

from pathlib import Path
from typing import Any

import pytest

from tests.kit.browser import opened
from tests.kit.page import page_of
from tests.kit.run_folders import write_run
from tests.kit.sweeps import LAM, TAU, rising, swept_row, three_keys

pytestmark = pytest.mark.xdist_group("browser")


def menu(page: Any, name: str) -> Any:
    return page.locator("#sweep-picker").get_by_role("combobox", name=name, exact=True)


def options(page: Any, name: str) -> list[str]:
    return list(menu(page, name).locator("option").all_inner_texts())


def pick(page: Any, name: str, option: str) -> None:
    menu(page, name).select_option(label=option, timeout=5000)


def test_keys_and_rows_are_picked_for_a_line_or_a_map(browser: Any, tmp_path: Path) -> None:
    with opened(browser, page_of(three_keys(tmp_path))) as page:
        chart = page.locator("#sweep-chart")
        assert options(page, "Row") == ["FedAvg", "FedLSA"]
        assert options(page, "Key") == ["λ (fedlsa.lam)", "τ (fedlsa.tau)", "β (partition.beta)"]
        assert chart.locator("path.line").count() == 1
        assert (chart.locator(".default-mark").count(), chart.locator(".best-mark").count()) == (1, 1)
        assert "τ = 0.1 (default), β = 0.1 (default)." in page.locator("#sweep figcaption").inner_text()
        pick(page, "β (partition.beta)", "0.5")
        chart.locator("svg").focus()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        assert "64.00 ± 1.41, n = 2, best on test" in page.locator("#tooltip").inner_text()
        pick(page, "Second key", "β (partition.beta)")
        assert chart.locator("rect:not(.default-mark)").count() == 9
        assert chart.locator("rect.default-mark").count() == 1
        assert chart.locator(".best-mark").count() == 3  # one for each β
        texts = chart.locator("svg text").all_text_contents()
        assert texts[:9] == ["43.5", "51.5", "59.5", "44.0", "52.0", "60.0", "48.0", "56.0", "64.0"]
        pick(page, "Row", "FedAvg")
        assert options(page, "Key") == ["β (partition.beta)"]
        assert (chart.locator("path.line").count(), chart.locator(".best-mark").count()) == (1, 0)
        assert "not a rule" not in page.locator("#sweep figcaption").inner_text()


def test_the_tables_of_the_sweep_stand_in_its_section(browser: Any, tmp_path: Path) -> None:
    with opened(browser, page_of(three_keys(tmp_path))) as page:
        assert page.locator("#sections a", has_text="Sweep").count() == 1
        assert page.locator("#sweep [data-table=sweep] tbody tr").count() == 21
        assert page.locator("#sweep [data-table=importance] tbody tr").count() == 1
        assert "Sweep of" not in page.locator("#overview").inner_text()
        assert page.locator("#sensitivity").count() == 0


def test_text_and_several_datasets_can_be_picked(browser: Any, tmp_path: Path) -> None:
    grid: dict[str, list[Any]] = {"fedlsa.mode": ["cosine", "none"], LAM: [0.1, 0.5]}
    defaults = {"fedlsa.mode": "step", LAM: 0.5}
    cells = [
        *swept_row("fedlsa", grid, defaults, rising, setting="digits", seeds=1, dataset="digits"),
        *swept_row("fedlsa", grid, defaults, rising, setting="pacs", seeds=1, dataset="pacs"),
    ]
    with opened(browser, page_of(write_run(tmp_path, cells))) as page:
        assert options(page, "Dataset") == ["digits", "pacs"]
        pick(page, "Key", "mode (fedlsa.mode)")
        assert "cosine" in page.locator("#sweep-chart").inner_text()
        pick(page, "Dataset", "pacs")
        pick(page, "Second key", "λ (fedlsa.lam)")
        assert page.locator("#sweep-chart rect").count() == 4
        assert page.locator("#sweep-chart rect.default-mark").count() == 0  # it was not run


def test_a_combination_without_a_result_stays_blank(browser: Any, tmp_path: Path) -> None:
    cells = swept_row("fedlsa", {LAM: [0.1, 0.5], TAU: [0.1, 0.2]}, {LAM: 0.5, TAU: 0.1}, rising, seeds=1)
    cells[3].test = None
    with opened(browser, page_of(write_run(tmp_path, cells))) as page:
        pick(page, "Second key", "τ (fedlsa.tau)")
        assert page.locator("#sweep-chart rect:not(.default-mark)").count() == 3


@pytest.mark.parametrize("width", [320, 768])
def test_the_section_fits_on_any_screen(browser: Any, tmp_path: Path, width: int) -> None:
    with opened(browser, page_of(three_keys(tmp_path)), width=width) as page:
        pick(page, "Second key", "τ (fedlsa.tau)")
        wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wider) == 0
