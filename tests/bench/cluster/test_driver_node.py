"""A process on another node than the driver's: records go by value, and what it lacks it is given.

Ray runs on one node here; a driver_node with another node's id is elsewhere for every process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray

from bench.cluster.data_server import start_data_server
from bench.cluster.driver_node import SCRATCH, DriverNode, open_driver_node, remove_abandoned
from bench.config.cell import CellConfig
from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.errors import UserError
from bench.records.cell_folder import CellFolder
from bench.records.provenance import code_versions
from bench.records.run_folder import RunFolder
from bench.records.transfer import contents
from bench.suite.planning import plan_cells
from bench.trials.cell_trials import CellTrial
from bench.trials.scratch import Job, ScratchFolders
from bench.trials.trainable import UPDATES
from tests.kit.cli import result_of, rounds_of
from tests.kit.tune import suite

pytestmark = pytest.mark.xdist_group("ray")


@pytest.fixture(scope="module")
def config() -> CellConfig:
    return plan_cells(suite())[0].config


@pytest.fixture
def elsewhere(ray_session: None, bench_cache: Path) -> Iterator[DriverNode]:
    node = ray.get_runtime_context().get_node_id()
    server = start_data_server("data_server", node, None, {"BENCH_CACHE": str(bench_cache)})
    yield DriverNode("elsewhere", Path("/nowhere"), {}, "data_server")
    ray.kill(server)


@pytest.fixture
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The node's place for temporary files."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def advance(run: CellRun, rounds: int) -> None:
    for _ in range(rounds):
        run.advance()


def test_a_cell_is_begun_by_one_process_and_finished_by_another(
    elsewhere: DriverNode, config: CellConfig, tmp_path: Path, own_place: Path
) -> None:
    """The second has only what the first has delivered; the data come from the object store."""
    conditions = Conditions(checkpoint_seconds=1e-9, data=elsewhere)
    kept = CellFolder(tmp_path / "kept")
    job = Job([(kept, config)], conditions, elsewhere)
    for rounds in (2, config.training.rounds - 2):
        scratch = ScratchFolders(job)
        ((folder, _),) = scratch.cells
        assert own_place in folder.path.parents
        advance(CellRun(folder, config, conditions), rounds)
        for updates in scratch.updates():
            updates.update.deliver(updates.folder, updates.config)
        scratch.clear()
        assert list(own_place.iterdir()) == []
    alone = CellRun(CellFolder(tmp_path / "alone"), config, Conditions())
    advance(alone, config.training.rounds)
    assert rounds_of(kept.path) == rounds_of(alone.folder.path)
    assert result_of(kept.path) == result_of(alone.folder.path)
    assert ScratchFolders(job).updates() == [], "it was done"


class FrequentReports(CellTrial):
    report_seconds = 0.001


@pytest.mark.parametrize("on_driver_node", [True, False])
def test_a_cell_that_waits_for_others_of_its_process_is_resumed(
    on_driver_node: bool, elsewhere: DriverNode, tmp_path: Path, own_place: Path
) -> None:
    """Its checkpoint stays in the process's folder until it is opened, while updates of the others go out."""
    here = replace(elsewhere, node=ray.get_runtime_context().get_node_id(), scratch=own_place)
    driver_node = here if on_driver_node else elsewhere
    conditions = Conditions(checkpoint_seconds=1e-9, data=driver_node)
    configs = [cell.config for cell in plan_cells(suite(seeds=2))]
    cells = [(CellFolder(tmp_path / f"{config.seed}"), config) for config in configs]
    kept, config = cells[1]
    interrupted = CellRun(CellFolder(tmp_path / "interrupted"), config, conditions)
    advance(interrupted, 2)
    contents(interrupted.folder).deliver(kept, config)
    before = kept.recorded()
    trial = FrequentReports({"job": Job(cells, conditions, driver_node, stacks=[1, 1])})
    report: dict[str, Any] = {}
    while not report.get("done"):
        report = trial.step()
        for updates in report[UPDATES]:
            updates.update.deliver(updates.folder, updates.config)
    trial.cleanup()
    assert len(kept.rounds()) == config.training.rounds, "and the record is that of the result"
    assert kept.recorded().startswith(before), "it began again"


def test_data_are_mapped_from_the_object_store(elsewhere: DriverNode, config: CellConfig) -> None:
    prepared = elsewhere.prepared(config)
    again = elsewhere.prepared(config)
    assert prepared is not None and again is not None
    for split in prepared.dataset.train.values():
        assert type(split.x) is np.ndarray and not split.x.flags.owndata and not split.x.flags.writeable
    domain = prepared.dataset.domains[0]
    one, other = prepared.dataset.train[domain].x, again.dataset.train[domain].x
    assert one.ctypes.data == other.ctypes.data, "the same memory"


def test_an_error_of_the_data_server_is_a_sentence(elsewhere: DriverNode, config: CellConfig) -> None:
    dataset = config.dataset.model_copy(update={"name": "no_such_data"})
    with pytest.raises(UserError, match=r"^unknown dataset 'no_such_data'"):
        elsewhere.prepared(config.model_copy(update={"dataset": dataset}))


def test_a_node_that_joined_with_other_code_is_named(
    elsewhere: DriverNode, config: CellConfig, tmp_path: Path, own_place: Path
) -> None:
    late = replace(elsewhere, versions={**code_versions(), "torch": "0.1"})
    kept = CellFolder(tmp_path / "kept")
    trial = CellTrial({"job": Job([(kept, config)], Conditions(data=late), late)})
    for updates in trial.step()[UPDATES]:
        updates.update.deliver(updates.folder, updates.config)
    assert "has torch" in (kept.failure() or "") and "the driver's machine has 0.1" in (kept.failure() or "")
    with pytest.raises(UserError, match="install the same version on both"):
        trial.step()
    trial.cleanup()


def test_scratch_of_a_killed_process_is_removed_and_that_of_a_living_one_is_not(
    elsewhere: DriverNode, config: CellConfig, tmp_path: Path, own_place: Path
) -> None:
    killed = own_place / f"{SCRATCH}killed"
    killed.mkdir()
    killed.with_suffix(".lock").touch()
    scratch = ScratchFolders(Job([(CellFolder(tmp_path / "kept"), config)], Conditions(), elsewhere))
    # here, as this process has another place for temporary files than Ray's
    remove_abandoned._function()  # type: ignore[attr-defined]
    assert not killed.exists()
    assert all(folder.path.is_dir() for folder, _ in scratch.cells)
    scratch.clear()


def test_on_the_driver_node_nothing_is_copied_and_nothing_is_left(
    ray_session: None, config: CellConfig, tmp_path: Path
) -> None:
    run = RunFolder(tmp_path)
    with open_driver_node(run, None, joined=False) as driver_node:
        assert driver_node.is_here and driver_node.prepared(config) is None
        scratch = ScratchFolders(Job([(run.cell("cells/one"), config)], Conditions(), driver_node))
        ((folder, _),) = scratch.cells
        advance(CellRun(folder, config, Conditions()), config.training.rounds)
        (updates,) = scratch.updates()
        assert all(isinstance(content, Path) for content in updates.update.files.values())
        updates.update.deliver(updates.folder, updates.config)
        assert run.cell("cells/one").is_done
    assert [entry.name for entry in tmp_path.iterdir()] == ["cells"]
