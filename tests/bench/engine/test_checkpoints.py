import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from bench.engine.checkpoints import load_state, save_state
from bench.records.checkpoints import KEPT, latest_checkpoint, write_checkpoint
from methods.core.tree import Tree
from tests.kit.contract import differing


def note(text: str) -> Callable[[Path], None]:
    """Fills a checkpoint with one file of this text."""

    def fill(folder: Path) -> None:
        (folder / "note").write_text(text)

    return fill


def latest(root: Path) -> tuple[int, str] | None:
    found = latest_checkpoint(root)
    return found and (found[0], (found[1] / "note").read_text())


def test_there_is_none_before_the_first(tmp_path: Path) -> None:
    assert latest_checkpoint(tmp_path / "not there") is None
    assert latest_checkpoint(tmp_path) is None


def test_the_newest_counts_and_few_are_kept(tmp_path: Path) -> None:
    for number in (8, 9, 10, 100):
        write_checkpoint(tmp_path / "deep" / "root", number, note(f"round {number}"))
        assert latest(tmp_path / "deep" / "root") == (number, f"round {number}")
    assert len(list((tmp_path / "deep" / "root").iterdir())) == KEPT >= 2


@pytest.mark.parametrize("number", [5, 6], ids=["the same round again", "the next round"])
def test_a_failure_leaves_the_previous_checkpoint_intact(tmp_path: Path, number: int) -> None:
    write_checkpoint(tmp_path, 5, note("good"))

    def break_off(folder: Path) -> None:
        (folder / "note").write_text("half")
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        write_checkpoint(tmp_path, number, break_off)
    assert latest(tmp_path) == (5, "good")


def test_nothing_has_its_name_before_it_is_complete(tmp_path: Path) -> None:
    """Whatever moment a kill comes at while filling, the next start finds the previous checkpoint."""
    write_checkpoint(tmp_path, 1, note("first"))
    seen = []

    def watch(folder: Path) -> None:
        seen.append(latest(tmp_path))
        (folder / "note").write_text("second")
        seen.append(latest(tmp_path))

    write_checkpoint(tmp_path, 2, watch)
    assert seen == [(1, "first"), (1, "first")]
    assert latest(tmp_path) == (2, "second")


def test_what_a_kill_left_behind_does_no_harm(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 1, note("first"))
    drafts = []

    def look(folder: Path) -> None:
        drafts.append(folder)
        note("second")(folder)

    write_checkpoint(tmp_path / "elsewhere", 2, look)
    left_behind = tmp_path / drafts[0].name
    left_behind.mkdir()
    note("half")(left_behind)
    (left_behind / "more").touch()
    assert latest(tmp_path) == (1, "first")
    write_checkpoint(tmp_path, 2, note("second"))
    found = latest_checkpoint(tmp_path)
    assert found is not None
    assert [file.name for file in found[1].iterdir()] == ["note"]
    assert latest(tmp_path) == (2, "second")


def test_a_state_comes_back_as_it_was(tmp_path: Path) -> None:
    state = {
        "model": Tree({"b.w": torch.randn(3, 2), "a.steps": torch.tensor(7), "half": torch.ones(2).half()}),
        "nested": {"deeper": {"tree": Tree({"x": torch.tensor([0.1], dtype=torch.float64)})}},
        "flag": torch.tensor(True),
        "special": torch.tensor([float("inf"), -0.0]),
        "count": 3,
        "nothing": {},
    }
    save_state(state, tmp_path / "state.pt")
    loaded = load_state(tmp_path / "state.pt")
    assert differing(state, loaded) == []
    assert isinstance(loaded["model"], Tree)
    assert isinstance(loaded["nested"]["deeper"]["tree"], Tree)
    assert list(loaded["model"]) == ["b.w", "a.steps", "half"]
    assert [leaf.dtype for leaf in loaded["model"].values()] == [torch.float32, torch.int64, torch.float16]
    assert loaded["count"] == 3 and loaded["nothing"] == {}


class Harmful:
    """Runs a command when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch '{self.file}'",)


def test_loading_does_not_execute_what_a_file_asks_for(tmp_path: Path) -> None:
    harm = tmp_path / "harm"
    torch.save({"model": Harmful(harm)}, tmp_path / "state.pt")
    with pytest.raises(pickle.UnpicklingError):
        load_state(tmp_path / "state.pt")
    assert not harm.exists()
