"""A sweep over two suites, killed and resumed: nothing is lost, and nothing is computed twice."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import bench
from tests.kit.cli import (
    TINY,
    call_bench,
    files_below,
    kill_session,
    run_bench,
    start_bench,
    wait_until,
    write_suite,
)

pytestmark = pytest.mark.xdist_group("clusters")

PATIENCE = 300
"""Seconds; the machine may be busy with other things."""


def results(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        name: file
        for name, file in files_below(folder).items()
        if "cells/" in name and name.endswith("result.json")
    }


def test_a_sweep_over_two_suites_is_killed_and_resumed(tmp_path: Path) -> None:
    training = TINY["training"] | {"rounds": 6}
    suites = [
        write_suite(tmp_path, suite=name, training=training, methods=["fedavg", "fedprox"], seeds=1)
        for name in ("one", "two")
    ]
    runs = tmp_path / "runs"
    command: list[object] = ["run", "--suite", ",".join(map(str, suites)), "--out", runs]
    command += ["--sweep", "fedprox.mu=0.1,1", "--sweep", "partition.samples=12,15"]
    planned = call_bench(*command, "--dry-run")
    assert "2 suites, 12 cells: one 6, two 6" in planned.out
    assert "cells: 6 (3 rows × 1 seed × 2 settings), 0 already done, 6 to run" in planned.out
    process = start_bench(*command)
    try:
        assert wait_until(lambda: any(runs.glob("one/cells/*/result.json")), PATIENCE)
    finally:
        kill_session(process)
    before = results(runs)
    outcome = run_bench(*command)
    assert outcome.code == 0, outcome.err
    after = results(runs)
    assert len(after) == 12 and before and {name: after[name] for name in before} == before
    rows = list(csv.DictReader((runs / "merged" / "tables" / "sweep.csv").open(encoding="utf-8")))
    assert len(rows) == 12
    points = {(row["suite"], row["row"], row["fedprox.mu"], row["partition.samples"]) for row in rows}
    assert ("two", "FedProx", "1", "15") in points and ("one", "FedAvg", "", "12") in points
    swept = bench.load(runs / "one").sweep()
    assert sorted(swept["fedprox.mu"].dropna()) == [0.1, 0.1, 1.0, 1.0]
    again = call_bench(*command, "--dry-run")
    assert again.out.count("6 already done, 0 to run") == 2
    more = call_bench(*command, "--sweep", "training.epochs=1", "--dry-run")
    assert more.code == 0 and "6 already done" in more.out  # the value that the suites have anyway
