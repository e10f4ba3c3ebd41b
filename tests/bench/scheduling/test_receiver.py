"""What the driver does with a trial's result."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.engine.conditions import Conditions
from bench.errors import UserError
from bench.records.cell_folder import CellFolder
from bench.records.parcel import Parcel
from bench.scheduling.desk import Job
from bench.scheduling.home import Home
from bench.scheduling.kept_trial import NEWS, Receiver
from bench.suite.planning import plan_cells
from tests.kit.tune import suite

CONFIG = plan_cells(suite())[0].config
HOME = Home("here", Path("/nowhere"), {})


def trial_of(*folders: CellFolder) -> SimpleNamespace:
    job = Job([(folder, CONFIG) for folder in folders], Conditions(), HOME)
    return SimpleNamespace(config={"job": job})


def test_news_are_delivered_and_not_kept(tmp_path: Path) -> None:
    one, other = CellFolder(tmp_path / "one"), CellFolder(tmp_path / "other")
    result = {
        "rounds": 1,
        NEWS: [(1, Parcel(rounds=b'{"round": 1}\n', checkpoint=(1, {"server.pt": b"s"})))],
    }
    Receiver().on_trial_result(1, [], trial_of(one, other), result)
    assert result == {"rounds": 1}, "Tune keeps results"
    assert not one.path.exists()
    assert other.rounds_done() == 1
    assert (other.checkpoints / "round-000001" / "server.pt").read_bytes() == b"s"


def test_what_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "cells").write_text("in the way")
    receiver = Receiver()
    news = {NEWS: [(0, Parcel())]}
    with pytest.raises((OSError, UserError)):
        receiver.on_trial_result(1, [], trial_of(CellFolder(tmp_path / "cells" / "one")), news)
    assert "cannot write" in str(receiver.problem) and "--out" in str(receiver.problem)
    assert pickle.loads(pickle.dumps(receiver)).problem is None
