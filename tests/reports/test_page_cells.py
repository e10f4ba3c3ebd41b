"""The cells on the page, in a real browser, and the commands that run them again."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from bench.records.reader import load_run
from bench.runs.drive import make_plan
from bench.suite.loading import load_suite
from bench.suite.overrides import parse_assignment
from bench.suite.planning import plan_cells
from kit.browser import opened
from kit.run_folders import Planned, write_run
from reports.page.command import rerun_commands

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


def planned_by(command: str) -> set[str]:
    """The cells that a command would run, by the planner itself."""
    words = shlex.split(command)
    options = list(zip(words[2::2], words[3::2], strict=True))
    given = dict(options)
    assert words[:2] == ["bench", "run"] and set(given) <= {
        "--suite",
        "--methods",
        "--seeds",
        "--set",
        "--out",
    }
    suite = load_suite(given["--suite"]).with_methods([given["--methods"]])
    suite = suite.model_copy(update={"seeds": int(given["--seeds"])})
    changes = dict(parse_assignment(value) for option, value in options if option == "--set")
    return {cell.cell_id for cell in plan_cells(suite.changed(changes) if changes else suite)}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"training.rounds": 3, "fedlsa.lam": 1e-05, "training.optimiser": {"name": "sgd", "lr": 0.5}},
    ],
    ids=["as it is", "changed"],
)
def test_the_command_runs_the_cell_again(tmp_path: Path, settings: dict[str, Any]) -> None:
    suite = load_suite("quickstart").with_methods(["fedavg", "fedlsa"])
    plan = make_plan(suite.changed(settings) if settings else suite, tmp_path, settings)
    plan.directory.mkdir()
    plan.write()
    run = load_run(plan.directory)
    assert len(run.cells) == 6
    for record, command in zip(run.cells, rerun_commands(run), strict=True):
        assert record.cell_id in planned_by(command)


@pytest.mark.parametrize(
    "settings",
    [{}, {"training.optimiser.momentum": 0.5, "fedlsa.tau": 0.25}],
    ids=["as it is", "changed"],
)
def test_the_command_of_a_tuned_cell_has_what_was_chosen(tmp_path: Path, settings: dict[str, Any]) -> None:
    chosen = {"fedavg": {"optimiser.lr": 0.3}, "fedlsa": {"lam": 1e-05, "tau": 0.5}}
    tuning = {"trials": 4, "methods": {method: {"set": own} for method, own in chosen.items()}}
    suite = load_suite("quickstart").with_methods(["fedavg", "fedlsa", "fedprox"])
    tuned = {f"{method}.{key}": value for method, own in chosen.items() for key, value in own.items()}
    suite = suite.changed(tuned)
    plan = make_plan(suite.changed(settings) if settings else suite, tmp_path, settings, tuning)
    plan.directory.mkdir()
    plan.write()
    run = load_run(plan.directory)
    commands = rerun_commands(run)
    for record, command in zip(run.cells, commands, strict=True):
        assert record.cell_id in planned_by(command)
    assert "fedlsa.lam=1.0e-05" in commands[3] and "fedavg" not in commands[3]


def test_a_record_of_tuning_without_values_changes_no_command(tmp_path: Path) -> None:
    cells = [Planned("fedavg", 0, (0.5, 0.5))]
    for number, methods in enumerate((None, {}, {"fedavg": {}}, {"fedavg": 4})):
        run = write_run(tmp_path / str(number), cells, tuning={"trials": 4, "methods": methods})
        expected = "bench run --suite quickstart --methods fedavg --seeds 1 --out rerun"
        assert rerun_commands(load_run(run)) == [expected]
