"""Shards of a run: together they are the plan, at the same time over one folder."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.errors import UserError
from bench.records.lock import alone, in_turn, one_of
from bench.records.provenance import commit
from bench.records.reader import load_run
from bench.runs.plan import Plan, plan_of
from bench.runs.request import RunRequest
from bench.tracking.tracker import Tracker
from reports.report import Report
from tests.kit.cli import (
    assert_one_sentence,
    call_bench,
    kill_session,
    read,
    result_of,
    rounds_of,
    start_bench,
    write_suite,
)
from tests.kit.places import REPOSITORY


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_suite(tmp_path_factory.mktemp("suite"))


def planned(suite: Path, out: Path, shard: str | None = None) -> Plan:
    return plan_of(RunRequest(str(suite), out=out, shard=shard))


def compute(plan: Plan, cells: int | None = None) -> None:
    conditions = Conditions(commit=commit())
    plan.write()
    for cell in plan.pending()[:cells]:
        run = CellRun(plan.folder.cell(cell.directory), cell.config, conditions)
        while not run.done:
            run.advance()


def untimed(table: Path) -> list[str]:
    lines = table.read_text(encoding="utf-8").splitlines()
    assert any(",Time (s)," in line for line in lines)
    return [line for line in lines if ",Time (s)," not in line]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_together_they_are_exactly_the_plan(suite: Path, tmp_path: Path, count: int) -> None:
    shards = [planned(suite, tmp_path, f"{number}/{count}") for number in range(1, count + 1)]
    ids = [cell.cell_id for plan in shards for cell in plan.own]
    assert sorted(ids) == sorted(cell.cell_id for cell in shards[0].cells) and len(ids) == 4
    sizes = [len(plan.own) for plan in shards]
    assert max(sizes) - min(sizes) <= 1
    assert all(plan.cells == shards[0].cells for plan in shards)


def test_whose_a_cell_is_does_not_depend_on_what_is_done(suite: Path, tmp_path: Path) -> None:
    before = [planned(suite, tmp_path, f"{number}/2").own for number in (1, 2)]
    compute(planned(suite, tmp_path), cells=1)
    assert [planned(suite, tmp_path, f"{number}/2").own for number in (1, 2)] == before
    pending = [len(planned(suite, tmp_path, f"{number}/2").pending()) for number in (1, 2)]
    assert sorted(pending) == [1, 2]


@pytest.mark.parametrize(
    ("shard", "expected"),
    [
        ("0/8", "shards are counted from 1 to COUNT"),
        ("9/8", "shards are counted from 1 to COUNT"),
        ("1/0", "shards are counted from 1 to COUNT"),
        ("a/b", "write NUMBER/COUNT, such as 3/8"),
        ("3", "write NUMBER/COUNT, such as 3/8"),
        ("-1/2", "write NUMBER/COUNT, such as 3/8"),
        ("1/2/3", "write NUMBER/COUNT, such as 3/8"),
    ],
)
def test_mistakes_cost_a_sentence(suite: Path, tmp_path: Path, shard: str, expected: str) -> None:
    outcome = call_bench("run", "--suite", suite, "--out", tmp_path, "--shard", shard)
    assert_one_sentence(outcome, f"--shard {shard}: {expected}")
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_tells_the_share(suite: Path, tmp_path: Path) -> None:
    outcome = call_bench("run", "--suite", suite, "--out", tmp_path, "--shard", "2/3", "--dry-run")
    assert outcome.code == 0
    assert "cells: 4 (2 methods × 2 seeds), 1 of them in shard 2/3: 0 already done, 1 to run" in outcome.out


def test_locks_keep_out_who_would_train_the_same_cells(tmp_path: Path) -> None:
    run, seconds = tmp_path / "tiny", 0.1
    with one_of(run, "bench run", 1, 2):
        with one_of(run, "bench run", 2, 2):
            pass
        with (
            pytest.raises(UserError, match=r"another `bench run --shard 1/2` is running"),
            one_of(run, "bench run", 1, 2, seconds),
        ):
            pass
        with (
            pytest.raises(UserError, match=r"another `bench run --shard 1/2` is running"),
            one_of(run, "bench run", 3, 4, seconds),
        ):
            pass
        with (
            pytest.raises(UserError, match=r"another `bench run --shard 1/2`"),
            alone(run, "bench run", seconds),
        ):
            pass
    with alone(run, "bench run"):
        with (
            pytest.raises(UserError, match="another `bench run` is"),
            one_of(run, "bench run", 1, 2, seconds),
        ):
            pass
        with pytest.raises(UserError, match="another `bench run` is"), alone(run, "bench run", seconds):
            pass
    with in_turn(run, 0) as first, in_turn(run, 0) as second:
        assert first and not second
    with alone(run, "bench run"), in_turn(run, 0) as again:
        assert again


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_disk_without_locks_costs_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)  # no such disk is at hand
    with (
        pytest.raises(UserError, match="as on a disk without file locks"),
        alone(tmp_path / "tiny", "bench run"),
    ):
        pass


@pytest.mark.xdist_group("clusters")
def test_two_at_the_same_time_give_the_bytes_of_one_run(suite: Path, tmp_path: Path) -> None:
    command = ["run", "--suite", suite, "--out", tmp_path / "shards", "--max-concurrent", "1", "--shard"]
    processes = [start_bench(*command, f"{n}/2", PYTHONPATH=str(REPOSITORY)) for n in (1, 2)]
    try:
        outputs = [process.communicate(timeout=480) for process in processes]
    finally:
        for process in processes:
            kill_session(process)
    assert [process.returncode for process in processes] == [0, 0], outputs
    said = [out for out, _ in outputs]
    assert any("explore: " in out for out in said), "nobody made the tables"
    assert all("explore: " in out or "have not ended: the shard that ends last" in out for out in said)

    shards, whole = tmp_path / "shards" / "tiny", planned(suite, tmp_path / "whole")
    compute(whole)
    assert read(shards / "plan.json") == read(whole.folder.path / "plan.json")
    for cell in whole.cells:
        assert result_of(shards / cell.directory) == result_of(whole.folder.path / cell.directory)
        assert rounds_of(shards / cell.directory) == rounds_of(whole.folder.path / cell.directory)
    shutil.copy(shards / "partition.json", whole.folder.path)  # which the cells alone do not write
    Report(load_run(whole.folder.path)).write(("csv",))
    assert untimed(shards / "tables/tiny.csv") == untimed(whole.folder.path / "tables/tiny.csv")
    assert (shards / "report.html").is_file()
    tracker = Tracker(None, tmp_path / "shards")
    assert tracker.pending(shards, [cell.as_record() for cell in whole.cells]) == []
