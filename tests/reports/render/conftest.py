"""A table with everything that a renderer has to cope with."""

from pathlib import Path

import pytest

from bench.records.reader import load_run
from reports.tables.kinds import domain_table
from reports.tables.table import Table
from tests.kit.rendering import NASTY
from tests.kit.run_folders import Planned, write_run

SHIFTS = (-0.02, 0.02, -0.02, 0.02, 0.0)
"""Five seeds with a sample standard deviation of two points."""


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Bounds, a best, a second, a partial, a failed and a missing cell; a label that needs escaping."""
    return domain_table(
        load_run(
            write_run(
                tmp_path / "run",
                [
                    *(Planned("local", seed, (0.5, 0.1)) for seed in range(5)),
                    *(Planned("fedavg", seed, (0.82 + shift, 0.40)) for seed, shift in enumerate(SHIFTS)),
                    *(Planned("fedlsa", seed, (0.92 + shift, 0.55)) for seed, shift in enumerate(SHIFTS)),
                    *(Planned("odd", seed, (0.7, 0.3), label=NASTY) for seed in range(4)),
                    Planned("odd", 4, label=NASTY, error=f"bad {NASTY}"),
                    *(Planned("fedprox", seed) for seed in range(5)),
                    *(Planned("central", seed, (0.95, 0.9)) for seed in range(5)),
                ],
                domains=("mnist", "art_painting"),
            )
        )
    )
