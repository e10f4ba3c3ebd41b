"""The report of the fault tests, written when all have ended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.fault_report import FaultReport


@pytest.fixture(scope="session")
def report() -> Iterator[FaultReport]:
    made = FaultReport()
    yield made
    made.write_if_asked()
