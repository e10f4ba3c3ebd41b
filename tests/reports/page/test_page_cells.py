"""The cells on the page, in a real browser."""

from pathlib import Path
from typing import Any

import pytest

from bench.records.reader import load_run
from tests.kit.browser import opened

pytestmark = pytest.mark.xdist_group("browser")


def test_a_cell_opens_with_everything_about_it(browser: Any, page_run: Path, page_file: Path) -> None:
    record = next(cell for cell in load_run(page_run).cells if (cell.method, cell.seed) == ("fedlsa", 2))
    with opened(browser, page_file) as page:
        page.get_by_role("button", name="Open FedLSA seed 2").press("Enter")
        dialog = page.get_by_role("dialog", name="FedLSA, seed 2")
        assert dialog.locator(".command code").inner_text() == (
            "bench run --suite quickstart --methods fedlsa --seeds 3 --out rerun"
        )
        facts = dialog.locator(".facts div").all_inner_texts()
        assert [fact.split("\n") for fact in facts][:3] == [
            ["AVG (%)", "72.00"],
            ["mnist (%)", "82.00"],
            ["fonts (%)", "62.00"],
        ]
        assert dialog.locator(".history tbody tr").count() == 10
        last = dialog.locator(".history tbody tr").last.locator("td").all_inner_texts()
        assert last == ["10", "72.00", "82.00", "62.00", "500 kB", "500 kB", "0.50", "1.5"]
        text = dialog.inner_text()
        assert record.config is not None and record.result is not None
        for known in ("digits_mini", "by_domain", record.provenance.commit):
            assert known in text
        assert page.url.endswith(f"#cell={record.cell_id}")
        page.keyboard.press("Escape")
        page.wait_for_url(page_file.as_uri())
        assert page.locator("dialog[open]").count() == 0


def test_the_command_can_be_copied(browser: Any, page_file: Path) -> None:
    with opened(browser, page_file) as page:
        page.evaluate(
            "navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }"
        )
        page.locator("#cells tbody tr").first.click()
        page.get_by_role("button", name="Copy").click()
        page.get_by_role("button", name="Copied").wait_for()
        assert page.evaluate("window.copied").startswith("bench run --suite quickstart --methods local")


def test_the_address_of_a_cell_opens_it(browser: Any, page_file: Path) -> None:
    with opened(browser, page_file) as page:
        page.goto("about:blank")
        page.goto(f"{page_file.as_uri()}#cell=fedavg----1")
        page.get_by_role("dialog", name="FedAvg, seed 1").wait_for()


def test_cells_are_found_by_words_and_by_their_method(browser: Any, page_file: Path) -> None:
    with opened(browser, page_file) as page:
        visible = page.locator("#cells tbody tr:visible")
        page.get_by_role("searchbox").fill("fedlsa 2")
        assert visible.count() == 1
        page.get_by_role("searchbox").fill("")
        page.locator("#overview").get_by_role("button", name="FedProx").click()
        assert visible.count() == 3 and "3 of 15 cells" in page.locator("#cells").inner_text()
