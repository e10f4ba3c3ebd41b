"""The report of the fault tests, written when all have ended well."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.fault_report import FaultReport


@pytest.fixture(scope="session")
def report(request: pytest.FixtureRequest) -> Iterator[FaultReport]:
    made = FaultReport()
    yield made
    if not request.session.testsfailed:
        made.write_if_asked()
