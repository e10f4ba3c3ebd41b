"""What the driver does with a trial's result."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.records.cell_folder import CellFolder
from bench.records.transfer import FileUpdate
from bench.suite.planning import plan_cells
from bench.trials.scratch import CellUpdate
from bench.trials.trainable import UPDATES, ReportWriter
from tests.kit.tune import suite

CONFIG = plan_cells(suite())[0].config


def test_news_are_delivered_and_not_kept(tmp_path: Path) -> None:
    one, other = CellFolder(tmp_path / "one"), CellFolder(tmp_path / "other")
    update = FileUpdate(first=True, rounds=b'{"round": 1}\n', checkpoint=(1, {"server.pt": b"s"}))
    result = {
        "rounds": 1,
        UPDATES: [CellUpdate(one, CONFIG, FileUpdate(first=True)), CellUpdate(other, CONFIG, update)],
    }
    assert ReportWriter()("trial", result) is False
    assert result == {"rounds": 1}, "Tune keeps results"
    assert (one.rounds_done(), other.rounds_done()) == (0, 1)
    assert one.config() == CONFIG
    assert (other.checkpoints / "round-000001" / "server.pt").read_bytes() == b"s"


def test_what_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "cells").write_text("in the way")
    writer = ReportWriter()
    updates = CellUpdate(CellFolder(tmp_path / "cells" / "one"), CONFIG, FileUpdate(first=True))
    with pytest.raises((OSError, UserError)):
        writer("trial", {UPDATES: [updates]})
    assert "cannot write" in str(writer.problem) and "--out" in str(writer.problem)
    assert pickle.loads(pickle.dumps(writer)).problem is None
