"""What the driver does with a trial's result."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.records.cell_folder import CellFolder
from bench.records.transfer import FileUpdate
from bench.scheduling.desk import News
from bench.scheduling.kept_trial import NEWS, Receiver
from bench.suite.planning import plan_cells
from tests.kit.tune import suite

CONFIG = plan_cells(suite())[0].config


def test_news_are_delivered_and_not_kept(tmp_path: Path) -> None:
    one, other = CellFolder(tmp_path / "one"), CellFolder(tmp_path / "other")
    parcel = FileUpdate(first=True, rounds=b'{"round": 1}\n', checkpoint=(1, {"server.pt": b"s"}))
    result = {"rounds": 1, NEWS: [News(one, CONFIG, FileUpdate(first=True)), News(other, CONFIG, parcel)]}
    assert Receiver()("trial", result) is False
    assert result == {"rounds": 1}, "Tune keeps results"
    assert (one.rounds_done(), other.rounds_done()) == (0, 1)
    assert one.config() == CONFIG
    assert (other.checkpoints / "round-000001" / "server.pt").read_bytes() == b"s"


def test_what_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "cells").write_text("in the way")
    receiver = Receiver()
    news = News(CellFolder(tmp_path / "cells" / "one"), CONFIG, FileUpdate(first=True))
    with pytest.raises((OSError, UserError)):
        receiver("trial", {NEWS: [news]})
    assert "cannot write" in str(receiver.problem) and "--out" in str(receiver.problem)
    assert pickle.loads(pickle.dumps(receiver)).problem is None
