"""`bench docs`: a page per method in Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def docs(
    results: Annotated[Path, typer.Argument(help="Folder of the results files.")] = Path("results"),
    out: Annotated[Path, typer.Option(help="Folder of the pages.")] = Path("docs/methods"),
) -> None:
    """Write a page per method and wrapper: definition, hyperparameters, messages, requirements, results."""
    from bench.cli.console import make_console
    from bench.method_pages.descriptions import descriptions
    from bench.records.results_file import SUFFIX, read_results
    from bench.text import counted
    from reports.docs import write_docs

    described = list(descriptions())
    runs = [read_results(file) for file in sorted(results.glob(f"*{SUFFIX}"))]
    index = write_docs(described, runs, out)
    make_console().say(
        f"{counted(len(described), 'page')}, {counted(len(runs), 'suite')} with results: {index}"
    )
