"""Ray's memory monitor ends a trial: it is tried again alone, named in a sentence, and the others go on."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.kit.cli import TINY, run_bench, write_suite
from tests.kit.fault_report import FaultReport
from tests.kit.places import REPOSITORY

pytestmark = [pytest.mark.faults, pytest.mark.xdist_group("ray")]

ROOM = 5 * 2**30
"""Bytes above what the machine uses now at which Ray steps in; driver and processes need about three."""
TAKEN = 8 * 2**30
"""Bytes that the greedy cell goes up to, unless it is stopped."""
GREEDY = '''
"""Greedy: FedAvg whose first seed takes more and more memory."""

import time

import numpy as np

from methods.fedavg import FedAvg

TAKEN = []


class Greedy(FedAvg):
    label = "Greedy"

    def aggregate(self, task, server, replies):
        if task.seed == 0:
            for _ in range(600):
                if len(TAKEN) < 64:
                    TAKEN.append(np.ones(2**27 // 8))
                time.sleep(0.1)
        return super().aggregate(task, server, replies)
'''


def test_a_greedy_trial(tmp_path: Path, report: FaultReport) -> None:
    memory = psutil.virtual_memory()
    if memory.available < TAKEN + ROOM:
        pytest.skip("the machine has too little free memory to try it safely")
    threshold = (memory.total - memory.available + ROOM) / memory.total
    (tmp_path / "greedy.py").write_text(GREEDY)
    training = TINY["training"] | {"rounds": 1}
    suite = write_suite(tmp_path, training=training, methods=["fedavg"], seeds=2)
    command = ["run", "--suite", suite, "--methods", tmp_path / "greedy.py", "--out", tmp_path / "runs"]
    outcome = run_bench(
        *command,
        timeout=1200,
        PYTHONPATH=str(REPOSITORY),
        RAY_memory_usage_threshold=str(threshold),
        RAY_memory_monitor_refresh_ms="100",
    )
    assert (outcome.code, outcome.err) == (1, ""), outcome
    assert "Traceback" not in outcome.out
    assert "Ray ended its process because" in outcome.out
    assert "was short of memory, even when it ran alone; use a node with more memory" in outcome.out
    assert "1 of 2 cells failed" in outcome.out, "the other cell went on"
    report.add(
        "Memory",
        "trial ended by Ray's memory monitor",
        1,
        "retried by itself, then reported in one line; the other cell was completed",
    )
