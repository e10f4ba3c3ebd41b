"""The wall clock jumps by hours and days, forwards and backwards, while a run computes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.kit.cli import kill_session, rounds_of, start_bench, wait_until
from tests.kit.clock import JumpingClock
from tests.kit.fault_report import FaultReport
from tests.kit.tune import ONE_BY_ONE, Package, tiny_suite
from tests.kit.undisturbed import assert_like_one_machine

pytestmark = [pytest.mark.faults, pytest.mark.xdist_group("ray")]

JUMPS = 20
DAY = 86_400.0
PATIENCE = 600


def test_a_run(tmp_path: Path, report: FaultReport) -> None:
    package = Package(tmp_path / "site", pace=0.5)
    clock, draw = JumpingClock(package.folder), random.Random(0)
    suite = tiny_suite(tmp_path, 8, model=ONE_BY_ONE, seeds=6)
    out = tmp_path / "runs"
    command = ["run", "--suite", suite, "--out", out, "--checkpoint-every", "0.1"]
    process = start_bench(*command, PYTHONPATH=package.path)
    jumps = 0
    try:
        while jumps < JUMPS and process.poll() is None:
            seen = len(package.rounds)

            def moved(seen: int = seen) -> bool:
                return len(package.rounds) > seen or process.poll() is not None

            wait_until(moved, PATIENCE)
            clock.jump(draw.choice([-1, 1]) * draw.choice([5.0, 3600.0, DAY, 400 * DAY]))
            jumps += 1
        package.take(0)
        said, errors = process.communicate(timeout=PATIENCE)
    finally:
        kill_session(process)
    assert (process.returncode, errors) == (0, ""), said
    assert jumps == JUMPS
    cells = assert_like_one_machine(out / "tiny", package, "auto", tmp_path / "undisturbed")
    for cell in (out / "tiny" / "cells").iterdir():
        assert len(rounds_of(cell)) == 8
    report.add(
        "Clock",
        "jump by 5 s, an hour, a day or 400 days, forwards or backwards",
        jumps,
        f"0 of {cells} cells lost, all equal",
    )
