"""`bench.study`: what `bench study` does, with its outcome as results and frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.api.keywords import takes_fields_of
from bench.api.observer import PrintingObserver
from bench.api.results import Result
from bench.api.tune import TuneResult
from bench.request import made
from bench.studies.request import StudyRequest
from bench.studies.study import study as run_study
from bench.suite.methods import METHODS
from bench.suite.model import Suite
from methods.base import FedAlgorithm
from reports.render.notebook import ShownTable


@dataclass(frozen=True)
class StudyResult:
    """What a study has come to, by suite."""

    results: Mapping[str, Result]
    """Of the suites whose searches are complete."""
    tuned: Mapping[str, TuneResult]
    ranking: ShownTable | None
    """Methods ranked over the suites; None where there is too little to rank."""
    problems: Sequence[str]
    """What is missing, one sentence each."""

    def __getitem__(self, suite: str) -> Result:
        return self.results[suite]

    def _repr_html_(self) -> str:
        tables = [table._repr_html_() for table in ([self.ranking] if self.ranking else [])]
        return "".join([*tables, *(result._repr_html_() for result in self.results.values())])


@takes_fields_of(StudyRequest)
def study(
    suites: str | Path | Suite | Sequence[str | Path | Suite],
    *,
    methods: Sequence[str | type[FedAlgorithm]] | None = None,
    progress: bool = True,
    **options: Any,
) -> StudyResult:
    """Tune all methods with equal budgets, run tuned and default rows, and report.

    Calling it again does only what is missing.
    """
    listed = [suites] if isinstance(suites, str | Path | Suite) else suites
    given = {
        "suites": [each if isinstance(each, Suite) else str(each) for each in listed],
        "methods": None if methods is None else [METHODS.resolve(each) for each in methods],
    }
    outcome = run_study(made(StudyRequest, given | options, "bench.study"), PrintingObserver(progress))
    return StudyResult(
        results={each.suite: Result(each.report.run, each.report) for each in outcome.suites if each.report},
        tuned={
            each.suite: TuneResult(
                {found.method: found for found in each.tuned}, [] if each.report else each.problems
            )
            for each in outcome.suites
        },
        ranking=outcome.ranking.table if len(outcome.suites) > 1 else None,
        problems=[problem for each in outcome.suites for problem in each.problems],
    )
