"""What comes out of a sweep: the long table, the tables of combinations, and what ordinary tables show."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

import bench
from bench.errors import UserError
from bench.records.reader import load_run
from reports.combine.merge import merge_runs
from reports.frames import frame, sweep
from reports.render import to_csv, to_html, to_latex, to_markdown
from reports.report import FORMATS, Report, SweepReport
from reports.tables.kinds import tables_of
from reports.tables.table import Table
from tests.kit.run_folders import Planned, write_run
from tests.kit.sweeps import BETA, LAM, TAU, rising, swept_row, three_keys, two_keys
from tests.kit.tables import entry, notes, row, seeds


def table_of(run: Path, name: str) -> Table:
    return next(table for table in tables_of(load_run(run)) if table.name == name)


def test_the_long_table_has_a_row_per_cell_and_a_column_per_swept_key(tmp_path: Path) -> None:
    run = load_run(three_keys(tmp_path))
    found = sweep([run])
    assert list(found.columns) == [
        *("suite", "dataset", "setting", "row", "method", "seed", "cell_id", "state"),
        *(BETA, LAM, TAU, "avg", "mnist", "fonts"),
    ]
    assert len(found) == len(run.cells) and set(found.row) == {"FedAvg", "FedLSA"}
    own = found[(found.row == "FedLSA") & (found[LAM] == 0.9) & (found[TAU] == 0.1) & (found[BETA] == 0.5)]
    expected = {seed: 100 * rising({LAM: 0.9, TAU: 0.1, BETA: 0.5}, seed) for seed in range(2)}
    assert own.set_index("seed").avg.to_dict() == pytest.approx(expected)
    assert own.mnist.to_list() == pytest.approx([value + 2 for value in expected.values()])
    assert found[found.row == "FedAvg"][LAM].isna().all() and not found[BETA].isna().any()
    assert "swept.fedlsa.lam" in frame(run).columns


def test_cells_without_a_result_are_in_the_long_table_too(tmp_path: Path) -> None:
    cells = swept_row("fedlsa", {LAM: [0.1, 0.5]}, {LAM: 0.5}, rising)
    cells[0].test, cells[1].personal = None, 0.75
    run = load_run(write_run(tmp_path, cells))
    found = sweep([run])
    assert found.state.to_list() == ["missing", "done", "done", "done"]
    assert found.avg.isna().to_list() == [True, False, False, False]
    assert found.personal.to_list()[1] == 75.0


def test_the_file_and_the_python_interface_have_the_same_numbers(tmp_path: Path) -> None:
    cells = swept_row("fedlsa", {LAM: [0.1, 0.5, 0.9]}, {LAM: 0.5}, rising, seeds=1)
    result = bench.load(write_run(tmp_path / "run", [*seeds("fedavg", [(0.5, 0.5)]), *cells]))
    files = result.write(tmp_path / "out", ["csv"])
    assert tmp_path / "out" / "tables" / "sweep.csv" in files
    lines = list(csv.DictReader(io.StringIO((tmp_path / "out" / "tables" / "sweep.csv").read_text())))
    assert [line["cell_id"] for line in lines] == result.sweep().cell_id.to_list()
    assert [float(line["avg"]) for line in lines] == pytest.approx(result.sweep().avg.to_list())
    assert {line[LAM] for line in lines} == {"", "0.1", "0.5", "0.9"}
    plain = bench.load(write_run(tmp_path / "plain", seeds("fedavg", [(0.5, 0.5)])))
    with pytest.raises(UserError, match="nothing was swept"):
        plain.sweep()
    assert not [file for file in plain.write(tmp_path / "plain_out", ["csv"]) if "sweep" in file.name]


def test_a_table_has_a_line_per_combination_with_default_and_best(tmp_path: Path) -> None:
    table = table_of(two_keys(tmp_path), "sweep")
    assert [each.label for each in table.rows] == [
        f"FedLSA λ={lam}, τ={tau}" for lam in (0.1, 0.5, 0.9) for tau in (0.05, 0.1)
    ]
    assert {each.label: each.signs for each in table.rows if each.signs} == {
        "FedLSA λ=0.5, τ=0.1": ("◇",),
        "FedLSA λ=0.9, τ=0.1": ("★",),
    }
    best = entry(table, "FedLSA λ=0.9, τ=0.1", "AVG")
    assert (best.text, best.mark) == ("60.00 ± 1.41", "best")
    assert entry(table, "FedLSA λ=0.9, τ=0.1", "Δ default").text == "+8.00 ± 0.00"
    assert entry(table, "FedLSA λ=0.5, τ=0.1", "Δ default").text == ""
    assert "not a selection rule" in table.caption and "`bench tune`" in table.caption
    for text in (to_markdown(table), to_html(table)):
        assert "★" in text and "◇" in text
    assert r"$\star$" in to_latex(table) and r"$\diamond$" in to_latex(table) and "?" not in to_latex(table)


def test_the_best_is_chosen_for_each_setting_of_the_data(tmp_path: Path) -> None:
    """A partition is not better than another: β=0.5 has the highest numbers and is no choice."""
    table = table_of(three_keys(tmp_path), "sweep")
    best = [each.label for each in table.rows if "★" in each.signs]
    assert best == [f"FedLSA λ=0.9, τ=0.1, β={beta}" for beta in (0.05, 0.1, 0.5)]
    defaults = [each.label for each in table.rows if "◇" in each.signs]
    assert defaults == [f"FedLSA λ=0.5, τ=0.1, β={beta}" for beta in (0.05, 0.1, 0.5)]
    assert [row(table, f"FedAvg β={beta}").signs for beta in (0.05, 0.1, 0.5)] == [(), (), ()]


def test_a_long_table_shows_default_and_best_and_the_csv_all(tmp_path: Path) -> None:
    grid = {LAM: [value / 10 for value in range(10)], TAU: [0.05, 0.1, 0.15, 0.2, 0.25]}
    cells = swept_row("fedlsa", grid, {LAM: 0.5, TAU: 0.1}, rising, seeds=1)
    table = table_of(write_run(tmp_path, cells), "sweep")
    assert [each.label for each in table.rows] == ["FedLSA λ=0.5, τ=0.1", "FedLSA λ=0.9, τ=0.1"]
    assert any("48 of 50 combinations" in note and "tables/sweep.csv" in note for note in notes(table))
    assert len({line["label"] for line in csv.DictReader(io.StringIO(to_csv(table)))}) == 50


def test_a_default_that_was_not_run_is_named(tmp_path: Path) -> None:
    cells = swept_row("fedlsa", {LAM: [0.1, 0.5]}, {LAM: 0.7}, rising)
    table = table_of(write_run(tmp_path, cells), "sweep")
    assert "Defaults that were not run: FedLSA λ=0.7." in notes(table)
    assert [each.signs for each in table.rows] == [(), ("★",)]


def test_importances_say_how_they_were_computed(tmp_path: Path) -> None:
    table = table_of(three_keys(tmp_path), "importance")
    assert table.columns == ("λ", "τ", "β", "λ × τ", "λ × β", "τ × β", "3 or more keys", "Seeds")
    shares = [each.mean or 0.0 for each in row(table, "FedLSA").entries[:3]]
    # additive: 20·λ over 0.1, 0.5, 0.9; τ costs 0 or 5; 10·β over 0.05, 0.1, 0.5
    variances = [64 * 2 / 3, 6.25, 100 * ((0.05**2 + 0.1**2 + 0.5**2) / 3 - (0.65 / 3) ** 2)]
    assert shares == pytest.approx([100 * each / sum(variances) for each in variances])
    assert "Functional ANOVA of the full grid: FedLSA (18 combinations)." in notes(table)
    assert [each.label for each in table.rows] == ["FedLSA"]  # FedAvg has one key


def test_few_swept_rows_stay_in_the_table_without_a_rank(tmp_path: Path) -> None:
    cells = [*seeds("fedavg", [(0.5, 0.5), (0.6, 0.6)])]
    cells += swept_row("fedlsa", {LAM: [0.1, 0.5, 0.9]}, {LAM: 0.5}, rising)
    table = tables_of(load_run(write_run(tmp_path, cells)))[0]
    assert [each.label for each in table.rows] == [
        "FedAvg",
        *(f"FedLSA λ={lam}" for lam in (0.1, 0.5, 0.9)),
    ]
    assert {label: entry(table, label, "AVG").mark for label in ("FedAvg", "FedLSA λ=0.5")} == {
        "FedAvg": "best",
        "FedLSA λ=0.5": "second",
    }
    assert entry(table, "FedLSA λ=0.9", "AVG").mark == ""
    assert any("neither ranked nor tested" in note for note in notes(table))


def large(path: Path, default: float, methods: tuple[str, ...] = ("fedavg", "fedlsa")) -> Path:
    cells: list[Planned] = seeds("fedavg", [(0.5, 0.5), (0.6, 0.6)]) if "fedavg" in methods else []
    grid = {LAM: [value / 20 for value in range(20)]}
    return write_run(path, cells + swept_row("fedlsa", grid, {LAM: default}, rising))


def test_a_large_sweep_leaves_its_defaults_in_the_ordinary_tables_and_says_so(tmp_path: Path) -> None:
    tables = tables_of(load_run(large(tmp_path, 0.5)))
    said = "38 of 42 cells have other values and are in the table of the sweep and in tables/sweep.csv."
    for table in tables:
        if table.name != "sweep":
            assert [each.label for each in table.rows] == ["FedAvg", "FedLSA λ=0.5"]
            assert any(said in note for note in notes(table))
    assert len(list(table_of(tmp_path, "sweep").rows)) == 20


def test_a_row_whose_default_was_not_run_is_named_where_it_is_left_out(tmp_path: Path) -> None:
    table = tables_of(load_run(large(tmp_path / "both", 7.0)))[0]
    assert [each.label for each in table.rows] == ["FedAvg"]
    assert any("defaults of FedLSA are not among the swept values" in note for note in notes(table))
    only = tables_of(load_run(large(tmp_path / "only", 7.0, methods=("fedlsa",))))[0]
    assert len(list(only.rows)) == 20  # else nothing were left


def test_many_settings_are_left_to_the_sweep_too(tmp_path: Path) -> None:
    grid = {BETA: [value / 10 for value in range(1, 9)]}
    cells = swept_row("fedavg", grid, {BETA: 0.1}, rising)
    tables = tables_of(load_run(write_run(tmp_path, cells)))
    assert [table.variant for table in tables if table.name == "accuracy"] == ["β=0.1"]
    assert len(list(table_of(tmp_path, "sweep").rows)) == 8


def test_several_suites_have_their_sweeps_side_by_side(tmp_path: Path) -> None:
    runs = [load_run(two_keys(tmp_path / name, suite=name, dataset=name)) for name in ("digits", "pacs")]
    report = SweepReport([*runs, load_run(write_run(tmp_path / "plain", seeds("fedavg", [(0.5, 0.5)])))])
    files = {str(file.relative_to(tmp_path / "out")) for file in report.write(FORMATS, tmp_path / "out")}
    assert files == {
        *(f"tables/sweep_summary{suffix}" for suffix in (".md", ".tex", ".csv")),
        *("tables/sweep.csv", "tables/sweep.html"),
        *(f"figures/sensitivity{kind}.{suffix}" for kind in ("", "_grid") for suffix in ("png", "pdf")),
    }
    lines = list(csv.DictReader(io.StringIO((tmp_path / "out" / "tables" / "sweep.csv").read_text())))
    assert {(line["suite"], line["dataset"]) for line in lines} == {("digits", "digits"), ("pacs", "pacs")}
    labels = [each.label for each in report.tables[0].rows]
    assert "FedLSA digits λ=0.1, τ=0.05" in labels and "FedLSA pacs λ=0.9, τ=0.1" in labels
    assert SweepReport([load_run(tmp_path / "plain")]).write(FORMATS, tmp_path / "nothing") == []


def test_merged_sweeps_that_differ_elsewhere_stay_apart(tmp_path: Path) -> None:
    def one(name: str, **options: Any) -> Path:
        cells = swept_row("fedlsa", {LAM: [0.1, 0.5]}, {LAM: 0.5}, rising, **options)
        return write_run(tmp_path / name, cells)

    first, second = one("first"), one("second", hyperparameters={"tau": 0.7})
    (merged,) = merge_runs([load_run(first), load_run(second)], mix=True)
    rows = set(sweep([merged]).row)
    assert rows == {"FedLSA (first)", "FedLSA (second)"}


def test_a_report_of_a_sweep_writes_everything(tmp_path: Path) -> None:
    report = Report(load_run(two_keys(tmp_path / "run")))
    names = {file.name for file in report.write(FORMATS, tmp_path / "out")}
    assert {"sweep.csv", "quickstart.md", "sensitivity.png", "sensitivity_grid.png", "report.html"} <= names
    text = (tmp_path / "out" / "tables" / "quickstart.md").read_text()
    assert "Sweep of quickstart over" in text and "Importance of what was swept" in text
