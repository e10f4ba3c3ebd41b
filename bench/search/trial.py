"""One configuration in motion: its cells, one per seed and setting, advance side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from bench.engine.cell_run import CellRun
from bench.engine.conditions import Conditions
from bench.records.cell_folder import CellFolder
from bench.records.config import CellConfig


class DivergedError(Exception):
    """Nothing can come of this configuration any more."""


class TrialRun:
    """Opening it again goes on from the last checkpoint of every cell."""

    def __init__(self, cells: Sequence[tuple[CellFolder, CellConfig]], conditions: Conditions) -> None:
        self._total = cells[0][1].training.rounds
        for folder, _ in cells:
            folder.forget_failure()  # of an attempt before this one
        self._finished = [folder.validations() for folder, _ in cells if folder.is_done]
        self._running = [
            CellRun(folder, config, conditions) for folder, config in cells if not folder.is_done
        ]

    @property
    def done(self) -> bool:
        return not self._running

    @property
    def rounds(self) -> int:
        """Those that all cells have behind them."""
        return min((cell.rounds_done for cell in self._running), default=self._total)

    @property
    def measured(self) -> tuple[int, float] | None:
        """The last round at which all cells were measured, and their mean."""
        history = mean_history([*self._finished, *(cell.validations for cell in self._running)])
        return history[-1] if history else None

    def advance(self) -> None:
        """One more round of the cell that is furthest behind."""
        cell = min(self._running, key=lambda each: each.rounds_done)
        cell.advance()
        if reason := cell.divergence():
            raise DivergedError(reason)
        if cell.done:
            self._finished.append(cell.validations)
            self._running.remove(cell)
            cell.close()

    def close(self) -> None:
        for cell in self._running:
            cell.close()


def mean_history(cells: Sequence[Mapping[int, float]]) -> list[tuple[int, float]]:
    """Round → mean validation accuracy, of the rounds at which all cells were measured."""
    common = set.intersection(*(set(cell) for cell in cells))
    return [(number, fmean(cell[number] for cell in cells)) for number in sorted(common)]
