"""The report of the fault tests, written to the file that BENCH_FAULT_REPORT names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.fault_report import FaultReport

INTRODUCTION = """
# What faults do to a run

Every figure here was written by `make test-faults`, which breaks runs and searches in the ways below and
holds them to one promise: the results are those of an undisturbed run, byte for byte apart from times, or one
sentence says what is wrong and what to do, and nothing that was finished is lost. The machine had two cores.
"""


@pytest.fixture(scope="session")
def report() -> Iterator[FaultReport]:
    made = FaultReport()
    yield made
    if file := os.environ.get("BENCH_FAULT_REPORT"):
        made.write(Path(file), INTRODUCTION)
