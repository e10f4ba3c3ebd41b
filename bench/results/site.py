"""`bench site`: all results as a static site."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.errors import UserError
from bench.method_pages.method_info import method_info
from bench.observer import Observer
from bench.records.reader import Run
from bench.records.results_file import SUFFIX, read_results
from bench.results.request import SiteRequest
from bench.suite.methods import METHODS
from reports.site import MethodInfo, write_site


@dataclass(frozen=True)
class SiteOutcome:
    index: Path
    suites: int


def site(request: SiteRequest, observer: Observer) -> SiteOutcome:
    """Write a page per suite and method, and an index."""
    files = sorted(request.results.glob(f"*{SUFFIX}"))
    if not files:
        raise UserError(
            f"no results files in {request.results}; write one with `bench submit RUN --results "
            f"{request.results}`"
        )
    runs = [read_results(file) for file in files]
    return SiteOutcome(write_site(runs, _method_infos(runs), request.out), len(runs))


def _method_infos(runs: Sequence[Run]) -> dict[str, MethodInfo]:
    """Of all methods that are installed, and of those with results as far as they are."""
    infos = {}
    for name in sorted({*METHODS.names(), *(cell.method for run in runs for cell in run.cells)}):
        try:
            infos[name] = method_info(name)
        except UserError:  # somebody else's method, which has results but is not installed here
            continue
    return infos
