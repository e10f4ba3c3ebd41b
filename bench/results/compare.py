"""`bench compare`: what changed between two runs."""

from __future__ import annotations

from bench.observer import Observer
from bench.records.reader import Run
from bench.records.results_file import load_records
from bench.records.run_folder import find_run
from bench.results.request import CompareRequest
from reports.combine.compare import RunComparison, compare_runs


def compare(request: CompareRequest, observer: Observer) -> RunComparison:
    """What differs in the plans and in the cells of two runs."""
    first, second = (
        each if isinstance(each, Run) else load_records(find_run(each, request.root))
        for each in (request.first, request.second)
    )
    return compare_runs(first, second)
