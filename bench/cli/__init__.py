"""The command line: one module per command."""

from bench.cli import app
from bench.startup.exit import run_and_exit


def main() -> None:
    """Entry point of `bench`."""
    run_and_exit(app.main)
