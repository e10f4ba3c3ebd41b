"""Where things of this repository stand, for tests that start other processes."""

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
REPOSITORY = TESTS.parent
