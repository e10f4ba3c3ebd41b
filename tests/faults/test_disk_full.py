"""The disk is full at every kind of write: a sentence says so, nothing is lost, and with room all goes on."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from bench.data import load_dataset
from bench.encoders import encoder_spec
from bench.encoders.embedding import embed
from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.errors import mendable
from bench.records.cell_folder import CellFolder
from bench.records.reader import load_run
from bench.records.run_folder import RunFolder
from bench.records.schema import PlanRecord
from bench.records.transfer import FileUpdates, contents
from bench.search.journal import Journal
from bench.suite.planning import PlannedCell, plan_cells
from bench.tracking.tracker import Tracker, TrackingError
from reports.report import FORMATS, Report
from tests.kit.cli import read, result_of, rounds_of
from tests.kit.data import noise
from tests.kit.fault_report import FaultReport
from tests.kit.run_folders import golden_run
from tests.kit.small_disk import SmallDisk, small_disk
from tests.kit.tracking import Store
from tests.kit.tune import suite

pytestmark = [pytest.mark.faults, pytest.mark.xdist_group("mlflow")]

SECTION = "Disk full"
TIMES = 40
PAGE = 4096
EVERY_ROUND = Conditions(executor="loop", checkpoint_seconds=0)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "small") as made:
        yield made


def refused(act: Callable[[], object]) -> bool:
    """Whether it ended in a sentence about the disk, or of MLflow's; anything else fails."""
    try:
        act()
    except TrackingError as error:
        assert "run the same command again" in str(error)
        return True
    except Exception as error:
        problem = mendable(error)
        assert problem is not None, f"no sentence for {error!r}"
        assert "cannot write" in str(problem) and ";" in str(problem)
        return True
    return False


def deliver_a_cell(kept: CellFolder, cell: PlannedCell, scratch: Path) -> None:
    """As a trial works: in a folder of its own, with what is new delivered after every round."""
    shutil.rmtree(scratch, ignore_errors=True)
    own = CellFolder(scratch)
    contents(kept).deliver(own, cell.config)
    changes = FileUpdates(own, by_path=False)
    run = CellRun(own, cell.config, EVERY_ROUND)
    changes.pack().deliver(kept, cell.config)
    while not run.done:
        run.advance()
        changes.pack().deliver(kept, None)


def test_records_checkpoints_and_results(disk: SmallDisk, tmp_path: Path, report: FaultReport) -> None:
    """Each time there is room for a little more of what the driver writes."""
    cell, draw, times = plan_cells(suite("scaffold"))[0], random.Random(0), 0
    undisturbed = CellFolder(tmp_path / "undisturbed")
    deliver_a_cell(undisturbed, cell, tmp_path / "scratch")
    for number in range(TIMES):
        kept = CellFolder(disk.path / "cells" / f"{number}")
        disk.fill(draw.randrange(24) * PAGE)
        if refused(partial(deliver_a_cell, kept, cell, tmp_path / "scratch")):
            times += 1
            disk.clear()
            deliver_a_cell(kept, cell, tmp_path / "scratch")
        disk.clear()
        assert rounds_of(kept.path) == rounds_of(undisturbed.path)
        assert result_of(kept.path) == result_of(undisturbed.path)
        assert kept.predictions.read_bytes() == undisturbed.predictions.read_bytes()
        assert {file.name for file in kept.path.iterdir()} == {f.name for f in undisturbed.path.iterdir()}
        shutil.rmtree(kept.path)
    assert times > TIMES / 2
    report.add(
        SECTION,
        "round records, checkpoints, predictions, results",
        times,
        "one-line error; with free space, completed from the last checkpoint, equal",
    )


def note(report: FaultReport, what: str) -> None:
    report.add(SECTION, what, 1, "one-line error; with free space, completed, nothing lost")


def test_a_plan(disk: SmallDisk, report: FaultReport) -> None:
    run = golden_run(disk.path / "run")
    before = (run / "plan.json").read_bytes()
    plan = PlanRecord.model_validate(read(run / "plan.json"))
    disk.fill()
    assert refused(lambda: RunFolder(run).write_plan(plan))
    assert (run / "plan.json").read_bytes() == before
    disk.clear()
    RunFolder(run).write_plan(plan)
    assert load_run(run)
    note(report, "a plan")


def test_a_journal(disk: SmallDisk, report: FaultReport) -> None:
    file = disk.path / "trials.jsonl"
    journal = Journal(file)
    journal.suggested(0, {"lr": 0.1})
    disk.fill()
    # what is left of the page that the file ends in is used up first
    while not refused(lambda: journal.ended(0, "failed", None, 1, "x" * 500)):
        pass
    whole = file.read_bytes()
    assert whole.endswith(b"\n")
    disk.clear()
    again = Journal(file)
    assert again.trials == journal.trials
    again.suggested(1, {"lr": 0.2})
    assert file.read_bytes().startswith(whole)
    note(report, "journal of a search")


def test_tables_figures_and_page(disk: SmallDisk, report: FaultReport) -> None:
    run = golden_run(disk.path / "run")
    Report(load_run(run)).write(FORMATS, run)
    before = {file: file.read_bytes() for file in run.rglob("tables/*")}
    shutil.rmtree(run / "figures")
    disk.fill()
    assert refused(lambda: Report(load_run(run)).write(FORMATS, run))
    disk.clear()
    Report(load_run(run)).write(FORMATS, run)
    assert {file: file.read_bytes() for file in run.rglob("tables/*")} == before
    assert (run / "report.html").stat().st_size and list((run / "figures").iterdir())
    note(report, "tables, figures and page")


def test_mlflow(disk: SmallDisk, report: FaultReport) -> None:
    store = Store(disk.path / "out")
    cell = store.cell("full", "a")
    tracker = Tracker(None, store.out)
    disk.fill()
    assert refused(lambda: tracker.log_cell(store.out, cell.planned))
    disk.clear()
    later = Tracker(None, store.out)
    assert store.pending(cell, tracker=later) == [cell.path]
    later.log_cell(store.out, cell.planned)
    assert store.pending(cell, tracker=later) == []
    note(report, "database of MLflow")


def test_caches(disk: SmallDisk, tmp_path: Path, report: FaultReport) -> None:
    import timm
    import torch

    def decoded(cache: Path) -> str:
        return load_dataset("digits_mini", {"limit": 50}, cache=cache).checksum

    weights = tmp_path / "tiny.pt"
    torch.save(timm.create_model("test_vit").state_dict(), weights)
    encoder = encoder_spec(f"timm:test_vit@{weights}")

    def embedded(cache: Path) -> str:
        return embed(noise(), encoder, cache, progress=lambda done, total: None).checksum

    for what, make in (("datasets", decoded), ("embeddings", embedded)):
        disk.fill(2 * PAGE)
        assert refused(partial(make, disk.path / "cache"))
        disk.clear()
        assert make(disk.path / "cache") == make(tmp_path / "elsewhere")
        note(report, f"cache of {what}")
