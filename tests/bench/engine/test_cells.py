"""One cell from its first round to its result, without Ray."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest

from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.records.cell_folder import CellFolder
from bench.suite.loading import load_suite
from bench.suite.planning import plan_cells
from tests.kit.cli import TINY, write_suite
from tests.kit.tune import one_search


def test_the_last_five_rounds_are_all_measured(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, training=TINY["training"] | {"rounds": 9}, evaluation={"every": 3}, seeds=1)
    cell = plan_cells(load_suite(str(suite)))[0]
    run = CellRun(CellFolder(tmp_path / "cell"), cell.config, Conditions())
    while not run.done:
        run.advance()
    averages = {
        line["round"]: fmean(line["test"].values())
        for line in map(json.loads, (tmp_path / "cell" / "rounds.jsonl").read_text().splitlines())
        if "test" in line
    }
    assert list(averages) == [3, 5, 6, 7, 8, 9]
    result = json.loads((tmp_path / "cell" / "result.json").read_text())
    assert result["last5_avg"] == pytest.approx(fmean(averages[number] for number in range(5, 10)))


@pytest.mark.parametrize("method", ["fedavg", "ditto"])
def test_clients_own_models_are_validated_where_a_search_asks_for_them(tmp_path: Path, method: str) -> None:
    """Ditto's weight acts on the clients' own models alone, so the global model cannot choose it."""
    training = TINY["training"] | {"rounds": 3, "epochs": 5, "validation": 0.5}
    file = write_suite(tmp_path, training=training, evaluation={"personal": True}, methods=[method], seeds=1)
    suite = load_suite(str(file))
    search = one_search(suite, method, "wide", "random", "none", 0, tmp_path)
    scores = []
    for number, rate in enumerate((0.001, 0.2)):
        values = {"lam": 10.0 if number else 0.01} if method == "ditto" else {"optimiser.lr": rate}
        (cell,) = search.cells(values)
        run = CellRun(CellFolder(tmp_path / cell.cell_id), cell.config, Conditions())
        while not run.done:
            run.advance()
        scores.append(run.validations[3])
        assert "test" not in (tmp_path / cell.cell_id / "rounds.jsonl").read_text()
    assert scores[0] != scores[1]
