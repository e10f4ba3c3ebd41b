"""Runs as data frames, against the records they are made from."""

import math
from pathlib import Path

import pytest

from bench.records.reader import load_run
from reports.frames import IDENTITY, curves, frame
from reports.report import Report
from tests.kit.rounds import rounds, write_rounds
from tests.kit.run_folders import Planned, write_run
from tests.kit.tables import FEDAVG, FEDLSA, seeds


def test_a_frame_has_a_row_per_cell_and_domain(tmp_path: Path) -> None:
    options = {"hyperparameters": {"lam": 0.7, "steps": {"server": 5}}, "personal": 0.9}
    cells = [*seeds("fedavg", FEDAVG), *seeds("fedlsa", FEDLSA, **options)]
    found = frame(load_run(write_run(tmp_path, cells)))
    assert len(found) == len(cells) * 2
    for cell in cells:
        assert cell.test is not None
        own = found[(found.method == cell.method) & (found.seed == cell.seed)].set_index("domain")
        assert own.accuracy.to_dict() == pytest.approx(
            {"mnist": 100 * cell.test[0], "fonts": 100 * cell.test[1]}
        )
        assert set(own.avg.round(9)) == {round(50 * sum(cell.test), 9)}
        assert set(own.cell_id) == {cell.cell}
    tuned = found[found.label == "FedLSA"]
    assert set(tuned["hyperparameters.lam"]) == {0.7} and set(tuned["hyperparameters.steps.server"]) == {5}
    assert found[found.label == "FedAvg"]["hyperparameters.lam"].isna().all()
    assert set(tuned.personal) == {90.0} and set(found.suite) == {"quickstart"}


def test_the_mean_of_a_frame_is_the_mean_of_the_table(tmp_path: Path) -> None:
    report = Report(load_run(write_run(tmp_path, seeds("fedavg", FEDAVG) + seeds("fedlsa", FEDLSA))))
    ours = frame(report.run).groupby("label").accuracy.mean()
    table = report.tables[0].frame()
    theirs = table[table.column == "AVG"].set_index("label")["mean"]
    assert ours.to_dict() == pytest.approx(theirs.to_dict())


def test_cells_without_a_result_are_there_without_numbers(tmp_path: Path) -> None:
    cells = [
        Planned("fedavg", 0, (0.5, math.nan)),
        Planned("fedavg", 1, error="out of memory"),
        Planned("fedavg", 2, curve={5: (0.4, 0.4)}),
        Planned("fedavg", 3),
    ]
    found = frame(load_run(write_run(tmp_path, cells)))
    states = found.drop_duplicates("cell_id").set_index("seed").state.to_dict()
    assert states == {0: "done", 1: "failed", 2: "unfinished", 3: "missing"}
    assert found.accuracy.count() == 1 and found.avg.count() == 0


def test_curves_have_a_row_per_round_with_totals_since_the_start(tmp_path: Path) -> None:
    cells = [Planned("fedavg", 0, (0.8, 0.4)), Planned("fedavg", 1)]
    run = write_run(tmp_path, cells)
    lines = rounds({"mnist": 0.8, "fonts": 0.4}, each=1000, metrics={"loss": 1.5}, validation=0.25)
    del lines[3]["test"]
    write_rounds(run, cells[0], lines)
    found = curves(load_run(run)).set_index("round")
    assert list(found.index) == list(range(1, 11))
    assert found.bytes_up.to_list() == [1000 * number for number in range(1, 11)]
    assert found.seconds.to_list() == pytest.approx([0.5 * number for number in range(1, 11)])
    assert math.isnan(found.avg[4]) and math.isnan(found.mnist[4])
    assert (found.avg[10], found.mnist[10], found.fonts[10]) == pytest.approx((60, 80, 40))
    assert set(found.validation) == {25.0} and set(found["metrics.loss"]) == {1.5}


def test_both_frames_can_be_joined(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path, [Planned("fedavg", 0, (0.8, 0.4), curve={5: (0.8, 0.4)})]))
    joined = curves(run).merge(frame(run), on=list(IDENTITY), suffixes=("", "_final"))
    assert len(joined) == 2 and (joined.avg == joined.avg_final).all()


def test_a_run_that_has_not_begun_has_empty_curves(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path, [Planned("fedavg", 0)]))
    assert curves(run).empty and {"round", "avg", "mnist", "fonts", "seconds"} <= set(curves(run).columns)
    assert frame(run).accuracy.isna().all()


def test_a_table_shows_itself_in_a_notebook(tmp_path: Path) -> None:
    report = Report(load_run(write_run(tmp_path, seeds("fedavg", FEDAVG) + seeds("fedlsa", FEDLSA))))
    table = report.tables[0]
    assert "<caption>quickstart" in table._repr_html_() and "| FedLSA" in table._repr_markdown_()
    wide = table.frame().pivot(index="label", columns="column", values="mean")
    assert wide.loc["FedAvg", "AVG"] == pytest.approx(61) and wide.loc["FedLSA", "Δ"] == pytest.approx(10)
