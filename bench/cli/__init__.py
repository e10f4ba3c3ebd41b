"""The command line: one module per command."""

from bench.startup.exit import main

__all__ = ["main"]
