"""The command line: one module per command."""

from bench.cli.app import main

__all__ = ["main"]
