"""The page in a real browser: its tables, its curves, its other sections and its notices."""

import re
from pathlib import Path
from typing import Any

import pytest

from bench.records.reader import load_run
from reports.page.content import page_content
from reports.tables.kinds import tables_of
from reports.tables.table import Entry, Row, Table
from tests.kit.browser import opened
from tests.kit.page import labels, lines_drawn, page_of
from tests.kit.rounds import rounds, write_rounds
from tests.kit.run_folders import COMMIT, Planned, write_run
from tests.kit.tables import FIVE_FEDAVG, FIVE_FEDLSA, seeds

pytestmark = pytest.mark.xdist_group("browser")


def heading(page: Any, text: str, where: str = "overview") -> Any:
    return page.locator(f"#{where} thead th", has=page.get_by_role("button", name=text, exact=True))


def test_the_same_records_give_the_same_bytes(page_run: Path, page_file: Path, tmp_path: Path) -> None:
    assert page_of(page_run, tmp_path).read_bytes() == page_file.read_bytes()


def test_the_table_shows_what_the_tables_say(browser: Any, page_run: Path, page_file: Path) -> None:
    table, statistics, _ = tables_of(load_run(page_run))
    with opened(browser, page_file) as page:
        texts = page.locator("#statistics tbody td").all_inner_texts()
        assert texts[: len(statistics.columns)] == [
            entry.text + ", ".join(entry.signs) for entry in next(statistics.rows).entries
        ]
        shown = page.locator("#overview tbody tr").all()
        for row, expected in zip(shown, table.rows, strict=True):
            texts = [text.replace("\n", "") for text in row.locator("td").all_inner_texts()]
            assert texts == [entry.text + "".join(entry.signs) for entry in expected.entries]
        assert page.locator("#overview td.best").count() == sum(
            entry.mark == "best" for row in table.rows for entry in row.entries
        )
        assert page.title() == "Digits, two domains"


def test_a_click_sorts_and_the_third_restores_the_order(browser: Any, page_file: Path) -> None:
    planned = ["Local", "FedAvg", "FedProx", "FedLSA", "Central"]
    by_average = ["Central", "FedLSA", "FedAvg", "FedProx", "Local"]
    with opened(browser, page_file) as page:
        assert labels(page) == planned
        column = heading(page, "AVG")
        for order, expected in (
            ("descending", by_average),
            ("ascending", by_average[::-1]),
            ("none", planned),
        ):
            column.get_by_role("button").click()
            assert (labels(page), column.get_attribute("aria-sort")) == (expected, order)
        heading(page, "Method").get_by_role("button").press("Enter")
        assert labels(page) == sorted(planned)


def test_values_that_are_missing_stay_last_whichever_way(browser: Any, tmp_path: Path) -> None:
    cells = [Planned("fedavg", 0), Planned("fedprox", 0, (0.5, 0.5)), Planned("fedlsa", 0, (0.7, 0.7))]
    with opened(browser, page_of(write_run(tmp_path, cells))) as page:
        button = heading(page, "AVG").get_by_role("button")
        button.click()
        assert labels(page) == ["FedLSA", "FedProx", "FedAvg"]
        button.click()
        assert labels(page) == ["FedProx", "FedLSA", "FedAvg"]


def test_five_seeds_have_a_p_and_the_selection_rules_stand_below(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path, seeds("fedavg", FIVE_FEDAVG) + seeds("fedlsa", FIVE_FEDLSA))
    with opened(browser, page_of(run)) as page:
        page.locator("#overview tbody tr", has_text="FedLSA").locator("td").nth(2).hover()
        assert "p against FedAvg < 0.001" in re.sub(r"\s+", " ", page.locator("#tooltip").inner_text())
        assert page.locator("#selection thead th").all_inner_texts()[1:] == [
            "Final",
            "Last 5",
            "Oracle (do not compare)",
        ]
        assert page.locator("#sections a", has_text="Selection").count() == 1


def test_a_row_that_still_improves_has_its_sign(browser: Any, page_run: Path, page_file: Path) -> None:
    (table, *_) = tables_of(load_run(page_run))
    rising = [row.label for row in table.rows if "↑" in row.signs]
    with opened(browser, page_file) as page:
        heads = page.locator("#overview tbody th", has_text="↑")
        assert rising and heads.locator("button").all_inner_texts() == rising
        assert page.locator("#overview .footnotes li", has_text="still improving at the end").count() == 1


def test_a_value_tells_its_seeds_and_spread_to_mouse_and_keyboard(browser: Any, page_file: Path) -> None:
    with opened(browser, page_file) as page:
        page.locator("#overview tbody tr", has_text="FedLSA").locator("td").first.hover()
        assert re.sub(r"\s+", " ", page.locator("#tooltip").inner_text()) == (
            "FedLSA, mnist seeds 3 mean 81.000 std over seeds 1.000 95 % interval 78.52 to 83.48"
        )
        page.locator("#overview td[tabindex='0']").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        assert page.locator("#tooltip strong").inner_text() == "FedAvg, fonts"
        page.keyboard.press("Escape")
        assert page.locator("#tooltip").is_hidden()


def test_intervals_and_p_values_reach_the_page(page_run: Path) -> None:
    entry = Entry("80.00 ± 1.00", mean=80.0, std=1.0, n=3, interval=(79.123456, 81.0), p=0.01234, p_best=1.0)
    row = Row("fedlsa", "FedLSA", (entry,))
    table = Table("quickstart", "", "A caption.", ("AVG",), ((row,),), ())
    content = page_content(load_run(page_run), [table])["tables"][0]["sections"][0][0]["entries"][0]
    assert (content["n"], content["interval"]) == (3, [79.1235, 81])
    assert (content["p"], content["p_best"]) == (0.0123, 1)


def test_methods_are_chosen_by_their_buttons(browser: Any, page_file: Path) -> None:
    everything = ["Central", "FedAvg", "FedLSA", "FedProx", "Local"]
    with opened(browser, page_file) as page:
        assert lines_drawn(page) == everything
        chips = page.get_by_role("group", name="Methods")
        chips.get_by_role("button", name="FedAvg").click()
        assert lines_drawn(page) == ["Central", "FedLSA", "FedProx", "Local"]
        assert chips.get_by_role("button", name="FedAvg").get_attribute("aria-pressed") == "false"
        chips.get_by_role("button", name="None").click()
        assert lines_drawn(page) == [] and "Nothing to draw" in page.locator("#curves-chart").inner_text()
        chips.get_by_role("button", name="All").press("Enter")
        assert lines_drawn(page) == everything


def tooltip_at_the_end(page: Any) -> dict[str, str]:
    page.locator("#curves-chart svg").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    pairs = page.locator("#tooltip .pair").all_inner_texts()
    title = page.locator("#tooltip strong").inner_text()
    return {"title": title, **dict(pair.strip().split("\n") for pair in pairs)}


def test_curves_over_rounds_bytes_and_time(browser: Any, page_file: Path) -> None:
    with opened(browser, page_file) as page:
        assert tooltip_at_the_end(page) == {
            "title": "Round 10",
            "Central": "81.00 ± 1.00",
            "FedLSA": "71.00 ± 1.00",
            "FedAvg": "51.00 ± 1.00",
            "FedProx": "41.00 ± 1.00",
            "Local": "21.00 ± 1.00",
        }
        page.get_by_role("button", name="Bytes sent").click()
        shown = tooltip_at_the_end(page)
        assert shown["title"] == "Sent up and down: 10.0 MB"
        assert set(shown) == {"title", "FedLSA", "FedAvg", "FedProx"}  # the others send nothing
        page.locator("#curves").get_by_role("button", name="Time").click()
        assert tooltip_at_the_end(page)["title"] == "Computing time: 5.0 s"
        assert "Computing time (s)" in page.locator("#curves-chart").inner_text()


def test_any_recorded_metric_can_be_chosen(browser: Any, page_file: Path) -> None:
    with opened(browser, page_file) as page:
        options = page.locator("#metric option").all_inner_texts()
        assert options == [
            "Test accuracy, AVG (%)",
            "Test accuracy, mnist (%)",
            "Test accuracy, fonts (%)",
            "Loss",
        ]
        page.locator("#metric").select_option(label="Test accuracy, fonts (%)")
        assert tooltip_at_the_end(page)["FedLSA"] == "61.00 ± 1.00"
        page.locator("#metric").select_option(label="Loss")
        assert tooltip_at_the_end(page)["FedLSA"] == "1.5 ± 0"


def test_partition_and_sensitivity_have_their_sections(browser: Any, page_file: Path, tmp_path: Path) -> None:
    with opened(browser, page_file) as page:
        radii = page.locator("#partition circle").evaluate_all("all => all.map(one => one.r.baseVal.value)")
        assert [radius / max(radii) for radius in radii] == pytest.approx([0.5, 1, 0.5**0.5, 0.125**0.5])
        assert page.locator("#sensitivity").count() == 0
    cells = [
        Planned("fedlsa", 0, (lam, lam), variant=f"λ={lam}", hyperparameters={"lam": lam})
        for lam in (0.1, 0.5, 0.7)
    ]
    with opened(browser, page_of(write_run(tmp_path, cells, kind="variants"))) as page:
        assert page.locator("#sensitivity path.line").count() == 1
        assert re.search(r"0\.1\s+0\.5\s+0\.7\s+λ", page.locator("#sensitivity").inner_text())
        assert page.locator("#partition").count() == 0


def test_printed_numbers_stand_beside_ours(browser: Any, tmp_path: Path) -> None:
    domains = ("caltech", "amazon", "webcam", "dslr")
    cells = [Planned("fedavg", seed, (0.6, 0.6, 0.6, 0.6)) for seed in range(2)]
    run = write_run(tmp_path, cells, domains=domains, suite="office_caltech")
    with opened(browser, page_of(run)) as page:
        papers = page.locator("#papers")
        assert "+6.80" in papers.inner_text()  # 60.00 against the 53.20 of the paper
        papers.get_by_role("combobox", name="Column").select_option("amazon")
        assert "−6.32" in papers.inner_text()
        assert "fedlsa_aaai2025" in papers.inner_text()


def test_gaps_are_said_and_numbers_that_are_none_are_not_shown(browser: Any, tmp_path: Path) -> None:
    nan = float("nan")
    cells = [
        Planned("fedavg", 0, (0.5, 0.5), rounds=10),
        Planned("fedavg", 1, (0.7, nan), rounds=10),
        Planned("fedprox", 0, error="out of <b>memory</b>"),
        Planned("fedlsa", 0, curve={5: (0.9, 0.9)}),
        Planned("fedproto", 0),
    ]
    run = write_run(tmp_path, cells)
    lines = rounds({"mnist": 0.5, "fonts": 0.5})
    write_rounds(run, cells[0], lines[:9], end='\n{"round": 10, "te')
    lines[4]["test"]["fonts"] = nan
    write_rounds(run, cells[1], lines)
    with opened(browser, page_of(run)) as page:
        assert page.locator(".notice li").all_inner_texts() == [
            "Failed: FedProx seed 0: out of <b>memory</b>",
            "Not finished, left out of the tables: FedLSA seed 0.",
            "Planned, not started: FedProto seed 0.",
            "The history ends before the last round: FedAvg seed 0.",
            "Final accuracy is not finite and counts as missing: FedAvg seed 1.",
            "Values in the history that are not finite are left out of the curves: FedAvg seed 1.",
        ]
        average = page.locator("#overview tbody tr", has_text="FedAvg").locator("td").nth(2)
        assert average.inner_text() == "50.001/2"
        assert "NaN" not in page.locator("body").inner_text()
        page.locator("#curves-chart svg").focus()
        drawn = page.locator("#curves-chart path[data-name=FedAvg]").get_attribute("d")
        assert drawn.count(",") == 8  # rounds 1 to 9 without the fifth
        assert "No seed has finished yet, so the curves show the rounds so far: FedLSA." in page.inner_text(
            "#curves"
        )
        states = page.locator("#cells tbody .state").all_inner_texts()
        assert states == ["done", "done", "failed", "unfinished", "missing"]
        for row in page.locator("#cells tbody tr").all():
            row.click()
            page.keyboard.press("Escape")


@pytest.mark.parametrize(
    ("commit", "shown"),
    [(f"{COMMIT[:12]}+", f"{COMMIT[:12]}+"), (COMMIT, COMMIT[:12]), (f"{COMMIT}+", f"{COMMIT[:12]}+")],
)
def test_the_header_says_that_files_were_changed_since_the_commit(
    browser: Any, tmp_path: Path, commit: str, shown: str
) -> None:
    run = write_run(tmp_path, [Planned("fedavg", 0, (0.5, 0.5), commit=commit)])
    with opened(browser, page_of(run)) as page:
        assert page.locator("#meta span").last.inner_text() == f"commit {shown}"


def test_a_plan_alone_makes_a_page(browser: Any, tmp_path: Path) -> None:
    with opened(browser, page_of(write_run(tmp_path, [Planned("fedavg", 0)]))) as page:
        assert "Planned, not started: FedAvg seed 0." in page.locator(".notice").inner_text()
