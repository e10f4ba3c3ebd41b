"""What a cell leaves behind travels in updates, and ends up as if it had been written in place."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.config.cell import CellConfig
from bench.records.cell_folder import CellFolder
from bench.records.checkpoints import latest_checkpoint, write_checkpoint
from bench.records.schema import FinalScores, Result, RoundRecord
from bench.records.transfer import FileUpdate, FileUpdates, contents
from bench.suite.planning import plan_cells
from tests.kit.tune import suite


@pytest.fixture(scope="module")
def config() -> CellConfig:
    return plan_cells(suite())[0].config


@pytest.fixture
def kept(tmp_path: Path) -> CellFolder:
    """The driver's folder of the cell."""
    return CellFolder(tmp_path / "run" / "cells" / "one")


@pytest.fixture
def scratch(tmp_path: Path, config: CellConfig) -> CellFolder:
    folder = CellFolder(tmp_path / "scratch")
    folder.open(config)
    folder.keep_rounds([])
    return folder


def save(folder: CellFolder, number: int) -> None:
    write_checkpoint(folder.checkpoints, number, lambda place: _fill(place, number))


def _fill(place: Path, number: int) -> None:
    (place / "server.pt").write_text(f"server {number}")
    (place / "clients-0.pt").write_text(f"clients {number}")


def finish(folder: CellFolder, config: CellConfig) -> None:
    folder.predictions.write_bytes(b"predictions")
    folder.model.mkdir()
    (folder.model / "server.pt").write_bytes(b"model")
    folder.finish(Result(cell_id=config.cell_id, rounds=3, final=FinalScores(avg=0.5)))


def files(folder: CellFolder) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder.path)): file.read_bytes()
        for file in folder.path.rglob("*")
        if file.is_file()
    }


@pytest.mark.parametrize("by_path", [True, False], ids=["on one disk", "by value"])
def test_the_folder_is_the_same_as_if_it_had_been_written_in_place(
    tmp_path: Path, kept: CellFolder, scratch: CellFolder, config: CellConfig, by_path: bool
) -> None:
    changes, direct = FileUpdates(scratch, by_path), CellFolder(tmp_path / "direct")
    direct.open(config)
    for number in (1, 2, 3):
        for folder in (scratch, direct):
            folder.append(RoundRecord(round=number))
        if number < 3:
            save(scratch, number)
        else:
            for folder in (scratch, direct):
                finish(folder, config)
        changes.pack().deliver(kept, config)
        assert kept.rounds_done() == number
        assert kept.is_done == (number == 3)
    assert files(kept) == files(direct)
    assert not kept.checkpoints.exists()


@pytest.mark.parametrize("by_path", [True, False], ids=["on one disk", "by value"])
def test_the_newest_checkpoint_travels_once(
    kept: CellFolder, scratch: CellFolder, config: CellConfig, by_path: bool
) -> None:
    changes = FileUpdates(scratch, by_path)
    save(scratch, 1)
    save(scratch, 2)
    update = changes.pack()
    update.deliver(kept, config)
    found = latest_checkpoint(kept.checkpoints)
    assert found is not None and found[0] == 2
    assert (found[1] / "server.pt").read_text() == "server 2"
    assert changes.pack().checkpoint is None
    assert not any(file.suffix == ".pt" for file in scratch.path.rglob("*")), "it takes up room"


def test_a_process_resumes_from_what_was_delivered(
    tmp_path: Path, kept: CellFolder, scratch: CellFolder, config: CellConfig
) -> None:
    """Rounds behind the checkpoint are dropped in the new process, and then in the folder."""
    changes = FileUpdates(scratch, by_path=False)
    scratch.append(RoundRecord(round=1))
    save(scratch, 1)
    scratch.append(RoundRecord(round=2))
    changes.pack().deliver(kept, config)
    again = CellFolder(tmp_path / "again")
    contents(kept).deliver(again, config)
    assert [line.round for line in again.rounds()] == [1, 2]
    assert latest_checkpoint(again.checkpoints) == (1, again.checkpoints / "round-000001")
    again.keep_rounds(again.rounds()[:1])
    again.append(RoundRecord(round=2, clients=7))
    FileUpdates(again, by_path=False).pack().deliver(kept, config)
    assert [(line.round, line.clients) for line in kept.rounds()] == [(1, 0), (2, 7)]


def test_a_parcel_that_comes_twice_changes_nothing(
    kept: CellFolder, scratch: CellFolder, config: CellConfig
) -> None:
    changes = FileUpdates(scratch, by_path=False)
    for number in (1, 2):
        scratch.append(RoundRecord(round=number))
        update = changes.pack()
        update.deliver(kept, config)
        before = files(kept)
        update.deliver(kept, config)
        assert files(kept) == before


def test_a_failure_travels_and_is_forgotten_by_the_next_attempt(
    tmp_path: Path, kept: CellFolder, scratch: CellFolder, config: CellConfig
) -> None:
    scratch.fail(RuntimeError("broken"))
    FileUpdates(scratch, by_path=False).pack().deliver(kept, config)
    assert kept.failure() == "RuntimeError: broken"
    again = CellFolder(tmp_path / "again")
    contents(kept).deliver(again, config)
    assert again.failure() is None
    FileUpdates(again, by_path=False).pack().deliver(kept, config)
    assert kept.failure() is None


def test_a_failure_is_news_once(kept: CellFolder, scratch: CellFolder, config: CellConfig) -> None:
    """Other cells of the process go on."""
    changes = FileUpdates(scratch, by_path=False)
    scratch.fail(RuntimeError("broken"))
    changes.pack().deliver(kept, config)
    update = changes.pack()
    assert not update
    update.deliver(kept, None)
    assert kept.failure() == "RuntimeError: broken"


def test_of_a_cell_that_was_never_opened_there_is_nothing(kept: CellFolder) -> None:
    assert contents(kept) == FileUpdate(first=True)
