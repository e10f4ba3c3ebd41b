"""Random bytes of what an unfinished run needs are damaged: it ends the same, or says what is wrong."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from bench.data import load_dataset
from bench.data.base import Dataset
from bench.data.cache import array_checksum, checked_thoroughly
from bench.encoders import encoder_spec
from bench.encoders.embedding import embed
from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.records.cell_folder import CellFolder
from bench.records.transfer import contents
from bench.search.finish import settle
from bench.search.journal import Trial
from bench.search.plan import Search
from bench.suite.planning import PlannedCell, plan_cells
from tests.kit.cli import result_of, rounds_of
from tests.kit.damage import Outcomes, damage_one
from tests.kit.data import noise
from tests.kit.fault_report import FaultReport
from tests.kit.tune import Package, search_of, suite, tiny_suite

pytestmark = pytest.mark.faults

TIMES = 60
TRIALS = 5
SECTION = "Bytes damaged at random on the disk"
EVERY_ROUND = Conditions(executor="loop", checkpoint_seconds=0)


@pytest.fixture(scope="module")
def cell() -> PlannedCell:
    return plan_cells(suite("scaffold"))[0]  # its clients have states of their own


@pytest.fixture(scope="module")
def interrupted(cell: PlannedCell, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cell with two checkpoints."""
    run = CellRun(CellFolder(tmp_path_factory.mktemp("interrupted") / "cell"), cell.config, EVERY_ROUND)
    for _ in range(3):
        run.advance()
    assert len(list(run.folder.checkpoints.iterdir())) == 2
    return run.folder.path


def completed(kept: CellFolder, cell: PlannedCell, scratch: Path) -> tuple[object, object, bytes]:
    """The records after the cell was taken up as a trial takes it up."""
    shutil.rmtree(scratch, ignore_errors=True)
    folder = CellFolder(scratch)
    contents(kept).deliver(folder, cell.config)
    run = CellRun(folder, cell.config, EVERY_ROUND)
    while not run.done:
        run.advance()
    return rounds_of(scratch), result_of(scratch), folder.predictions.read_bytes()


@pytest.mark.parametrize("pattern", ["checkpoint/*/*", "rounds.jsonl"])
def test_a_cell_that_is_taken_up_again(
    pattern: str, cell: PlannedCell, interrupted: Path, tmp_path: Path, report: FaultReport
) -> None:
    draw, outcomes = random.Random(pattern), Outcomes()
    expected = completed(CellFolder(tmp_path / "nothing"), cell, tmp_path / "scratch")
    for number in range(TIMES):
        kept = CellFolder(tmp_path / f"{number}")
        shutil.copytree(interrupted, kept.path)
        damage_one(sorted(kept.path.glob(pattern)), draw)
        outcomes.judge(partial(completed, kept, cell, tmp_path / "scratch"), expected, kept.path)
    what = "checkpoint" if pattern.startswith("checkpoint") else "`rounds.jsonl`"
    report.add(SECTION, f"{what} of an unfinished cell", outcomes.total, str(outcomes))


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Search]:
    """A search whose trials are done."""
    folder = tmp_path_factory.mktemp("searched")
    package = Package(folder / "site")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(package.folder)
        search = search_of(tiny_suite(folder, rounds=2), folder / "runs", "random", "none")
        take_up(search)
        yield search


def take_up(search: Search) -> list[Trial]:
    """Run what is missing, without Ray; cells that are done are not computed again."""
    journal = search.journal()
    for number in range(TRIALS):
        if number >= len(journal.trials):
            values = search.suggestion(number, journal.trials)
            assert values is not None
            journal.suggested(number, values)
        trial = journal[number]
        for folder, planned in zip(search.folders(trial), search.cells(trial.values), strict=True):
            if not folder.is_done:
                run = CellRun(folder, planned.config, Conditions())
                while not run.done:
                    run.advance()
        settle(search, journal)
    return list(search.journal().trials)


def test_a_journal(searched: Search, tmp_path: Path, report: FaultReport) -> None:
    draw, outcomes = random.Random(0), Outcomes()
    file = searched.directory / "trials.jsonl"
    whole, expected = file.read_bytes(), list(searched.journal().trials)
    for _ in range(3 * TIMES):
        file.write_bytes(whole)
        damage_one([file], draw)
        outcomes.judge(lambda: take_up(searched), expected, file)
    file.write_bytes(whole)
    report.add(SECTION, "journal of a search", outcomes.total, str(outcomes))


def test_a_journal_that_was_deleted_as_told_is_made_anew(searched: Search) -> None:
    expected = list(searched.journal().trials)
    times = {file: file.stat().st_mtime_ns for file in searched.directory.rglob("result.json")}
    (searched.directory / "trials.jsonl").unlink()
    assert take_up(searched) == expected
    assert {file: file.stat().st_mtime_ns for file in searched.directory.rglob("result.json")} == times


def sums(dataset: Dataset) -> list[str]:
    """The names and the checksums of all arrays."""
    splits = [*dataset.train.values(), *dataset.test.values()]
    arrays = [array_checksum(array) for split in splits for array in (split.x, split.y)]
    return [*dataset.classes, *dataset.domains, dataset.checksum, *arrays]


def decoded(cache: Path) -> list[str]:
    with checked_thoroughly():
        return sums(load_dataset("digits_mini", {}, cache=cache))


def embedded(cache: Path) -> list[str]:
    import timm
    import torch

    torch.manual_seed(0)
    weights = cache.parent / "tiny.pt"
    if not weights.exists():
        torch.save(timm.create_model("test_vit").state_dict(), weights)
    with checked_thoroughly():
        return sums(embed(noise(), encoder_spec(f"timm:test_vit@{weights}"), cache, progress=_quiet))


def _quiet(done: int, total: int) -> None:
    pass


@pytest.mark.parametrize(("what", "make"), [("datasets", decoded), ("embeddings", embedded)])
def test_a_cache(what: str, make: Callable[[Path], str], tmp_path: Path, report: FaultReport) -> None:
    draw, outcomes = random.Random(what), Outcomes()
    original = tmp_path / "original"
    expected = make(original)
    for number in range(TIMES // 2):
        cache = tmp_path / f"{number}"  # a process compares an entry once, so that every one has its own
        shutil.copytree(original, cache)
        damaged = damage_one([file for file in sorted(cache.glob(f"{what}/*/*")) if file.is_file()], draw)
        outcomes.judge(partial(make, cache), expected, damaged)
        shutil.rmtree(cache)
    report.add(SECTION, f"cache of {what}", outcomes.total, str(outcomes))
