"""Many cells: a process takes several at a time, and one that fails is no matter of the others."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from bench.cluster.driver_node import open_driver_node
from bench.cluster.resources import Resources
from bench.engine.conditions import Conditions
from bench.records.run_folder import RunFolder
from bench.suite.loading import load_suite
from bench.suite.planning import PlannedCell, plan_cells
from bench.trials.bundles import bundles
from bench.trials.cell_trials import run_cells
from bench.trials.conditions import make_conditions
from tests.kit.cli import write_suite


@dataclass
class Log:
    """What a watcher is told."""

    finished_cells: list[str] = field(default_factory=list)
    failed_cells: dict[str, str] = field(default_factory=dict)
    sentences: list[str] = field(default_factory=list)

    def advanced(self, cell: str, rounds: int, average: float | None) -> None: ...

    def finished(self, cell: str) -> None:
        self.finished_cells.append(cell)

    def failed(self, cell: str, reason: str) -> None:
        assert cell not in self.failed_cells
        self.failed_cells[cell] = reason

    def said(self, text: str) -> None:
        self.sentences.append(text)


def planned(folder: Path, seeds: int) -> list[PlannedCell]:
    return plan_cells(load_suite(str(write_suite(folder, methods=["fedavg"], seeds=seeds))))


@pytest.mark.parametrize("processes", [1, 2, 7])
@pytest.mark.parametrize("count", [0, 1, 5, 60, 1000])
def test_processes_take_less_and_less_and_single_items_at_the_end(count: int, processes: int) -> None:
    found = bundles(range(count), processes)
    sizes = [len(bundle) for bundle in found]
    assert [item for bundle in found for item in bundle] == list(range(count))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-4 * processes :] == [1] * min(count, 4 * processes)
    assert len(found) <= 30 * processes


@pytest.mark.xdist_group("ray")
def test_a_cell_that_fails_beside_others_fails_alone(ray_session: None, tmp_path: Path) -> None:
    cells = planned(tmp_path, 9)
    assert len(bundles(cells, 1)[0]) == 2
    config = cells[0].config
    impossible = config.model_copy(
        update={"partition": config.partition.model_copy(update={"samples": 10**6})}
    )
    cells[0] = replace(cells[0], config=impossible)
    log, run = Log(), RunFolder(tmp_path / "run")
    run.path.mkdir()
    with open_driver_node(run, None, joined=False) as driver_node:
        run_cells(run, cells, Conditions(data=driver_node), driver_node, Resources(max_concurrent=1), log)
    assert sorted(log.finished_cells) == sorted(cell.cell_id for cell in cells[1:])
    assert list(log.failed_cells) == [cells[0].cell_id]
    assert "1000000" in log.failed_cells[cells[0].cell_id]
    assert [run.cell(cell.directory).is_done for cell in cells] == [False] + [True] * 8
    assert not list(tmp_path.rglob("bench-cells-*"))


UNDECLARED = '''
"""A method that does not say that a number decides what it computes."""

from methods.fedavg import FedAvg


class Undeclared(FedAvg):
    label = "Undeclared"
    neutral = {}
    mu: float = 0.1

    def objective(self, task, client, message):
        plain = super().objective(task, client, message)
        return plain if self.mu > 0.2 else lambda params, batch: 2 * plain(params, batch)
'''


@pytest.mark.xdist_group("ray")
def test_a_stack_that_cannot_be_computed_says_so_and_is_computed_cell_by_cell(
    ray_session: None, tmp_path: Path
) -> None:
    (tmp_path / "undeclared.py").write_text(UNDECLARED)
    rows = [
        {"name": str(tmp_path / "undeclared.py"), "label": str(mu), "set": {"mu": mu}}
        for mu in (0.1, 0.2, 0.3)
    ]
    suite = write_suite(tmp_path, methods=[*rows, "fedavg"], model={"name": "mlp"}, seeds=1)
    cells = plan_cells(load_suite(str(suite)))
    log, run = Log(), RunFolder(tmp_path / "run")
    run.path.mkdir()
    configs = [cell.config for cell in cells]
    with open_driver_node(run, None, joined=False) as driver_node:
        conditions = make_conditions(
            configs, cpus=1, gpus=0, together=4, driver_node=driver_node, executor="stacked"
        )
        run_cells(run, cells, conditions, driver_node, Resources(max_concurrent=1), log)
    assert sorted(log.finished_cells) == sorted(cell.cell_id for cell in cells)
    assert not log.failed_cells
    (sentence,) = log.sentences
    assert sentence.startswith("local of 3 cells could not be computed in one stack (RuntimeError: vmap: ")
    assert sentence.endswith("; these cells are computed one by one")
    for cell in cells:
        result = run.cell(cell.directory).result()
        assert result is not None
        assert result.timing.stacked_with == 1
