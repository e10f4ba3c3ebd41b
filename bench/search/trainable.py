"""What a process does for a search: it trains one or several trials, and reports their progress to Tune."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

from ray import tune

from bench.engine.cell_stack import Cells
from bench.search.halving import Halving
from bench.search.trial import DivergedError, TrialBatch
from bench.trials.scratch import Job
from bench.trials.trainable import CellTrainable


@dataclass(frozen=True)
class SearchJob(Job):
    """The cells of one or several trials, trial after trial."""

    trials: tuple[int, ...]
    """Their numbers."""
    halving: Halving | None
    """Stops trials early where a job has several, which Tune cannot do."""


class TrialUpdate(NamedTuple):
    """What a process reports about a trial."""

    number: int
    rounds: int
    validation: float | None
    ended: bool
    failed: bool


class SearchTrainable(CellTrainable):
    """Advances trials until one is measured or ends, or for a second."""

    job: SearchJob
    _batch: TrialBatch | None = None

    def begin(self, cells: Cells) -> None:
        each = len(cells) // len(self.job.trials)
        trials = {
            number: cells[position * each : (position + 1) * each]
            for position, number in enumerate(self.job.trials)
        }
        self._batch = TrialBatch(trials, self.job.conditions, self.job.halving, self.process_cache)
        self._raise_if_single(self._batch)

    def work(self) -> None:
        assert self._batch is not None
        before, started = _seen(self._batch), time.monotonic()
        while not self._batch.done:
            self._batch.advance()
            self._raise_if_single(self._batch)
            if _seen(self._batch) != before or time.monotonic() - started >= self.report_seconds:
                return

    def _raise_if_single(self, batch: TrialBatch) -> None:
        """Let Tune retry a job whose only trial failed, unless the trial diverged."""
        failure = batch.trials[0].failure
        if len(batch.trials) == 1 and failure is not None and not isinstance(failure, DivergedError):
            raise failure

    def standing(self) -> dict[str, Any]:
        trials = self._batch.trials if self._batch else []
        first = (trials[0].measured if trials else None) or (0, math.nan)
        return {
            "trials": [
                TrialUpdate(
                    trial.number,
                    trial.rounds,
                    trial.measured[1] if trial.measured else None,
                    trial.ended,
                    trial.failure is not None,
                )
                for trial in trials
            ],
            "measured": first[0],
            "validation": first[1],
            tune.result.DONE: bool(trials) and all(trial.ended for trial in trials),
        }

    def end(self) -> None:
        if self._batch is not None:
            self._batch.close()
        self._batch = None


def _seen(batch: TrialBatch) -> list[object]:
    return [(trial.measured, trial.ended) for trial in batch.trials]
