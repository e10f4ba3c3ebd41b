"""What one trial of Ray Tune computes: one or more configurations of a search, in one process."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

from ray import tune

from bench.engine.cell_stack import Cells
from bench.scheduling.desk import Job
from bench.scheduling.kept_trial import KeptTrial
from bench.scheduling.trials import REPORT_SECONDS
from bench.search.halving import Halving
from bench.search.trial import DivergedError, TrialBatch


@dataclass(frozen=True)
class SearchJob(Job):
    """The cells of one or more configurations, one configuration after the other."""

    trials: tuple[int, ...]
    """The configurations' numbers."""
    halving: Halving | None
    """Who is stopped early among configurations that are computed together, where Tune cannot do it."""


class TrialUpdate(NamedTuple):
    """What a process reports about a configuration."""

    number: int
    rounds: int
    validation: float | None
    ended: bool
    failed: bool


class SearchTrainable(KeptTrial):
    """Advances configurations until there is a new measurement, or for a second."""

    job: SearchJob
    _batch: TrialBatch | None = None

    def begin(self, cells: Cells) -> None:
        each = len(cells) // len(self.job.trials)
        trials = {
            number: cells[position * each : (position + 1) * each]
            for position, number in enumerate(self.job.trials)
        }
        self._batch = TrialBatch(trials, self.job.conditions, self.job.halving, self.shelf)
        self._raise_if_alone(self._batch)

    def work(self) -> None:
        assert self._batch is not None
        before, started = _seen(self._batch), time.monotonic()
        while not self._batch.done:
            self._batch.advance()
            self._raise_if_alone(self._batch)
            if _seen(self._batch) != before or time.monotonic() - started >= REPORT_SECONDS:
                return

    def _raise_if_alone(self, batch: TrialBatch) -> None:
        """A configuration by itself fails its trial, which Tune tries again, unless it diverged."""
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
