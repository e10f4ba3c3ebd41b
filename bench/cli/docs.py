"""`bench docs`: a page per method in Markdown."""

from __future__ import annotations

from bench.cli.request_options import command_of
from bench.method_pages.request import DocsRequest


@command_of(DocsRequest, positional=("results",))
def docs(request: DocsRequest) -> None:
    """Write a page per method and wrapper: definition, hyperparameters, messages, requirements, results."""
    from bench.cli.console import make_console
    from bench.method_pages.descriptions import descriptions
    from bench.records.results_file import SUFFIX, read_results
    from bench.text import counted
    from reports.docs import write_docs

    described = list(descriptions())
    runs = [read_results(file) for file in sorted(request.results.glob(f"*{SUFFIX}"))]
    index = write_docs(described, runs, request.out)
    make_console().say(
        f"{counted(len(described), 'page')}, {counted(len(runs), 'suite')} with results: {index}"
    )
