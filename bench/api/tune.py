"""`bench.tune`: what `bench tune` does, with its outcome as a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.api.keywords import takes_fields_of
from bench.api.observer import PrintingObserver
from bench.request import made
from bench.search.request import ALL, TuneRequest
from bench.search.tune import tune as run_searches
from bench.search.tuned import Tuned
from bench.suite.methods import METHODS
from bench.suite.model import Suite
from methods.base import FedAlgorithm

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TuneResult:
    """What was chosen for each row; `bench.run(..., tuned=True)` uses it."""

    tuned: Mapping[str, Tuned]
    """By the row's label."""
    incomplete: Sequence[str]
    """One sentence per search that has not spent its budget."""

    def frame(self) -> pd.DataFrame:
        """For each row of the suite: default and tuned accuracy on validation data, and the values chosen."""
        import pandas as pd

        rows = [
            {
                "row": name,
                "method": found.method,
                "default": found.default.validation,
                "tuned": found.best.validation,
                "trials": found.budget.finished + found.budget.stopped + found.budget.failed,
                "complete": found.budget.complete,
                **found.best.set,
            }
            for name, found in self.tuned.items()
        ]
        return pd.DataFrame(rows)

    def _repr_html_(self) -> str:
        return str(self.frame().to_html(index=False))


@takes_fields_of(TuneRequest)
def tune(
    suite: str | Path | Suite,
    *,
    methods: str | Sequence[str | type[FedAlgorithm]] = ALL,
    progress: bool = True,
    **options: Any,
) -> TuneResult:
    """Choose hyperparameters on validation data, with the same number of trials for every method.

    `methods` is "all", a name, or a list of names and classes.
    """
    names = [methods] if isinstance(methods, str) else [METHODS.resolve(each) for each in methods]
    given = {"suite": suite if isinstance(suite, Suite) else str(suite), "methods": names}
    outcome = run_searches(made(TuneRequest, given | options, "bench.tune"), PrintingObserver(progress))
    return TuneResult({found.row: found for found in outcome.tuned}, outcome.incomplete)
