"""The command line: one module per command."""

from bench.cli.ending import main

__all__ = ["main"]
