"""Where things of this repository stand, for tests that start other processes."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
