"""Early stopping: which round counts, and when there is no point in going on, by validation alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.config.training import EarlyStop
from bench.engine.checkpoints import load_state, save_state
from bench.engine.federation import Federation
from bench.records.predictions import Predictions, read_predictions
from bench.records.schema import Selection
from bench.records.selection import Best, best_round

SERVER, PREDICTIONS = "chosen-server.pt", "chosen-predictions.npz"


class ChosenRound:
    """What a run will be judged by if it ends now: the state and predictions of its best round so far.

    Which round that is follows from the records; the rest goes into checkpoints.
    """

    def __init__(self, rule: EarlyStop) -> None:
        self._rule = rule
        self._best: Best | None = None
        self.server: dict[str, Any] = {}
        self.predictions: Predictions | None = None

    def measured(self, validations: Mapping[int, float], federation: Federation) -> None:
        """Look at all measurements after a new one; keep the present state if that is the best."""
        self._best = best_round(validations, self._rule.min_delta)
        if self._best is not None and self._best.round == federation.rounds:
            self.server, self.predictions = federation.server, federation.predictions()

    @property
    def stops(self) -> bool:
        return self._best is not None and self._best.since >= self._rule.patience

    @property
    def selection(self) -> Selection:
        """For the result."""
        assert self._best is not None, "nothing was measured"
        reason = (
            f"no better validation accuracy in {self._rule.patience} measurements after round "
            f"{self._best.round}"
            if self.stops
            else "all rounds were run"
        )
        return Selection(round=self._best.round, validation=self._best.validation, reason=reason)

    def save(self, folder: Path) -> None:
        if self._best is not None:
            save_state(self.server, folder / SERVER)
            if self.predictions is not None:
                self.predictions.write(folder / PREDICTIONS)

    def load(self, folder: Path, validations: Mapping[int, float], device: Any) -> None:
        self._best = best_round(validations, self._rule.min_delta)
        if (folder / SERVER).is_file():
            self.server = load_state(folder / SERVER, device)
        if (folder / PREDICTIONS).is_file():
            self.predictions = read_predictions(folder / PREDICTIONS)
