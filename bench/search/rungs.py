"""Early stops by Ray Tune, for searches whose configurations are computed one by one.

Where several are computed together, their process stops them: see `halving.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ray.tune.schedulers import ASHAScheduler, FIFOScheduler

from bench.search.halving import REDUCTION
from bench.search.journal import Trial
from bench.search.running import RunningSearch


class EarlyStops(FIFOScheduler):
    """Asks the rungs of the search that a trial belongs to, and ends trials of a search whose time is up."""

    def __init__(self, search_of: Callable[[str], RunningSearch]) -> None:
        """`search_of`: a trial's id → its search."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._search_of = search_of
        self._rungs: dict[RunningSearch, _Rungs] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Tune copies its scheduler to disk; all that it knows is in the journals."""
        return {}

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        running = self._search_of(trial.trial_id)
        if running.search.scheduler == "asha" and not running.stacks:
            rungs = self._rungs.setdefault(running, _Rungs(running))
            rungs.on_trial_add(tune_controller, trial)

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        running = self._search_of(trial.trial_id)
        if running.time_is_up:
            return self.STOP
        rungs = self._rungs.get(running)
        return self.CONTINUE if rungs is None else rungs.on_trial_result(tune_controller, trial, result)

    def on_trial_complete(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> None:
        if rungs := self._rungs.get(self._search_of(trial.trial_id)):
            rungs.on_trial_complete(tune_controller, trial, result)

    def on_trial_remove(self, tune_controller: Any, trial: Any) -> None:
        if rungs := self._rungs.get(self._search_of(trial.trial_id)):
            rungs.on_trial_remove(tune_controller, trial)


class _Rungs(ASHAScheduler):
    """ASHA on rounds that knows what earlier commands measured, and never stops the default."""

    def __init__(self, running: RunningSearch) -> None:
        super().__init__(
            time_attr="measured",
            metric="validation",
            mode="max",
            max_t=running.search.rounds,
            grace_period=running.search.grace,
            reduction_factor=REDUCTION,
        )
        self._running = running
        for trial in running.journal.trials:
            if trial.outcome in ("finished", "stopped"):
                self._replay(SimpleNamespace(trial_id=f"earlier-{trial.number}"), trial)

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        super().on_trial_add(tune_controller, trial)
        self._replay(trial, self._running.journal[self._running.number(trial.trial_id)])

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        action: str = super().on_trial_result(tune_controller, trial, result)
        return self.CONTINUE if self._running.number(trial.trial_id) == 0 else action

    def _replay(self, tune_trial: Any, trial: Trial) -> None:
        """The bracket is asked for its decision again, for the sake of what it remembers."""
        for number, validation in self._running.search.history(trial):
            self._brackets[0].on_result(tune_trial, number, validation)
