"""Damage on the disk that leaves valid JSON or a loadable file is noticed all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import UserError, mendable
from bench.records.cell_folder import CellFolder
from bench.records.checkpoints import add_checksums, whole_checkpoint, write_checkpoint
from bench.records.checksums import is_broken, with_checksum
from bench.records.schema import FinalScores, Result, RoundRecord
from bench.search.journal import Journal
from bench.suite.planning import plan_cells
from tests.kit.tune import suite

ROUNDS = b'{"round": 1}\n{"round": 2}\n'


def flip(file: Path, old: bytes, new: bytes) -> None:
    content = file.read_bytes()
    assert content.count(old) == 1
    file.write_bytes(content.replace(old, new))


def save(root: Path, number: int, checksum: bool = True) -> None:
    def fill(folder: Path) -> None:
        (folder / "server.pt").write_bytes(b"state %d" % number)
        if checksum:
            add_checksums(folder, ROUNDS[: 13 * number])

    write_checkpoint(root, number, fill)


def test_a_checksum_belongs_to_one_content() -> None:
    content = with_checksum({"a": 0.1, "b": [1, None, "ß"]})
    assert not is_broken(content)
    assert is_broken(content | {"a": 0.2})
    assert not is_broken({"a": 0.2}), "older records have none"


def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path) -> None:
    save(tmp_path, 1)
    save(tmp_path, 2)
    assert whole_checkpoint(tmp_path, ROUNDS) == (2, tmp_path / "round-000002", ROUNDS)
    flip(tmp_path / "round-000002" / "server.pt", b"state 2", b"state 3")
    assert whole_checkpoint(tmp_path, ROUNDS) == (1, tmp_path / "round-000001", ROUNDS[:13])
    assert whole_checkpoint(tmp_path, ROUNDS.replace(b"1", b"7")) is None


def test_a_checkpoint_of_an_older_version_counts(tmp_path: Path) -> None:
    save(tmp_path, 2, checksum=False)
    assert whole_checkpoint(tmp_path, ROUNDS) == (2, tmp_path / "round-000002", ROUNDS)


@pytest.fixture
def finished(tmp_path: Path) -> CellFolder:
    config = plan_cells(suite())[0].config
    folder = CellFolder(tmp_path / "cell")
    folder.open(config)
    folder.append(RoundRecord(round=1, test={"a": 0.25}))
    folder.finish(Result(cell_id=config.cell_id, rounds=1, final=FinalScores(avg=0.25)))
    return folder


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("result.json", b'"avg": 0.25', b'"avg": 0.75'),
        ("rounds.jsonl", b"0.25", b"0.75"),
        ("config.json", b'"rounds": 4', b'"rounds": 5'),
    ],
)
def test_a_changed_digit_in_the_records_of_a_finished_cell_is_a_sentence(
    finished: CellFolder, name: str, old: bytes, new: bytes
) -> None:
    def read() -> object:
        return finished.result(), finished.rounds(), finished.config()

    assert read()
    flip(finished.path / name, old, new)
    with pytest.raises(UserError, match=f"{name} is damaged .*; delete the folder"):
        read()


def test_a_changed_digit_in_a_journal_is_a_sentence(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "trials.jsonl")
    journal.suggested(0, {"lr": 0.125})
    journal.ended(0, "finished", 0.5, 4)
    assert Journal(tmp_path / "trials.jsonl").trials == journal.trials
    flip(tmp_path / "trials.jsonl", b"0.125", b"0.225")
    with pytest.raises(UserError, match=r"trials\.jsonl is damaged at line 1; delete it"):
        Journal(tmp_path / "trials.jsonl")


def test_a_full_disk_is_for_the_user_to_mend_wherever_it_was_noticed() -> None:
    try:
        try:
            raise OSError(28, "No space left on device", "runs/x")
        except OSError as error:
            raise RuntimeError("the run failed") from error
    except RuntimeError as error:
        assert "cannot write runs/x: No space left on device; make room there" in str(mendable(error))
    assert mendable(FileNotFoundError(2, "No such file")) is None
