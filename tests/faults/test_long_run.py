"""A thousand cells through one driver: memory, open files and logs do not grow with their number."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.kit.cli import TINY, kill_session, start_bench, write_suite
from tests.kit.fault_report import FaultReport
from tests.kit.growth import Sampler, sampled
from tests.kit.kills import members
from tests.kit.places import REPOSITORY

pytestmark = [pytest.mark.faults, pytest.mark.xdist_group("ray")]

CELLS = int(os.environ.get("BENCH_FAULT_CELLS", "1001"))
SECTION = "Long runs"
MEGABYTES_PER_HUNDRED = 5.0
"""What a process may grow by for a hundred cells; the driver, and Ray in it, keep a few kilobytes of each."""
FILES = 8


def test_a_thousand_cells(tmp_path: Path, report: FaultReport) -> None:
    training = TINY["training"] | {"rounds": 2}
    suite = write_suite(tmp_path, training=training, methods=["fedavg"], seeds=CELLS)
    cells = tmp_path / "runs" / "tiny" / "cells"
    process = start_bench("run", "--suite", suite, "--out", tmp_path / "runs", PYTHONPATH=str(REPOSITORY))

    def workers() -> list[int]:
        return members(process.pid, "ray::ResourceTrainable")

    sampler = Sampler(
        done=lambda: sum(1 for _ in cells.glob("*/result.json")),
        processes=lambda: [process.pid, *workers()],
    )
    try:
        with sampled(sampler):
            out, err = process.communicate(timeout=3600)
    finally:
        kill_session(process)
    assert (process.returncode, err) == (0, ""), (out, err)
    assert sum(1 for _ in cells.glob("*/result.json")) == CELLS
    kept = [pid for pid, seen in sampler.samples.items() if seen[-1].done - seen[0].done > 0.6 * CELLS]
    assert process.pid in kept and len(kept) > 1, "workers are kept from cell to cell"
    for pid in kept:
        found = sampler.growth(pid, CELLS)
        who = "driver" if pid == process.pid else "process of trials"
        report.add(SECTION, f"{who} over {CELLS} cells", 1, str(found))
        print(who, found)
        assert found.megabytes_per_hundred < MEGABYTES_PER_HUNDRED
        assert found.last.files - found.middle.files <= FILES
