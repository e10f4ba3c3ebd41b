"""Trials that run side by side in one process; each has one cell per seed and setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.config.cell import CellConfig
from bench.engine.cell import CellRun
from bench.engine.cell_stack import CellStack
from bench.engine.conditions import Conditions
from bench.engine.process_cache import ProcessCache
from bench.engine.stacking.joint import StackError
from bench.records.cell_folder import CellFolder
from bench.search.halving import Halving
from bench.search.plan import mean_history


class DivergedError(Exception):
    """All replies of a round, or the server's state, are NaN or infinite."""


class TrialRun:
    """One trial while it runs."""

    def __init__(self, number: int, cells: Sequence[tuple[CellFolder, CellConfig]]) -> None:
        self.number = number
        self.folders = [folder for folder, _ in cells]
        self.failure: Exception | None = None
        self.stopped = False
        self._total = cells[0][1].training.rounds
        self._left_at: int | None = None
        self._finished = [folder.validations() for folder in self.folders if folder.is_done]
        self.running: list[CellRun] = []

    @property
    def ended(self) -> bool:
        return self.stopped or self.failure is not None or not self.running

    @property
    def rounds(self) -> int:
        """How many rounds all cells have done."""
        if self._left_at is not None:
            return self._left_at
        return min((cell.rounds_done for cell in self.running), default=self._total)

    @property
    def measured(self) -> tuple[int, float] | None:
        """The last round at which all cells were measured, and their mean."""
        history = mean_history([*self._finished, *(cell.validations for cell in self.running)])
        return history[-1] if history else None

    def let_go(self, cell: CellRun) -> None:
        """Keep only the measurements of a cell."""
        self._finished.append(cell.validations)
        self.running.remove(cell)

    def leave(self) -> list[CellRun]:
        """End the trial early; returns its cells, so that their stacks can let go of them, too."""
        self._left_at, cells = self.rounds, list(self.running)
        for cell in cells:
            self.let_go(cell)
        return cells


class TrialBatch:
    """Several trials: their cells of one seed and setting are one stack.

    A new batch resumes from the last checkpoint of every cell. An error in a trial ends only that trial; a
    `StackError` is raised.
    """

    def __init__(
        self,
        trials: Mapping[int, Sequence[tuple[CellFolder, CellConfig]]],
        conditions: Conditions,
        halving: Halving | None = None,
        process_cache: ProcessCache | None = None,
    ) -> None:
        process_cache = process_cache or ProcessCache()
        process_cache.keep_for(config for cells in trials.values() for _, config in cells)
        for cells in trials.values():
            for folder, _ in cells:
                folder.forget_failure()  # of an earlier attempt
        self.trials = [TrialRun(number, cells) for number, cells in trials.items()]
        self._stacks = [
            CellStack(cells, conditions, process_cache) for cells in zip(*trials.values(), strict=True)
        ]
        self._halving = halving
        self._owners = {folder: trial for trial in self.trials for folder in trial.folders}
        for stack in self._stacks:
            for cell in stack.running:
                self._owners[cell.folder].running.append(cell)
        self._note_failures()

    @property
    def done(self) -> bool:
        return all(trial.ended for trial in self.trials)

    def advance(self) -> None:
        """One more round of the cells that are furthest behind."""
        stack = min(
            (stack for stack in self._stacks if stack.running),
            key=lambda each: min(cell.rounds_done for cell in each.running),
        )
        cells = list(stack.running)
        stack.advance()
        self._note_failures()
        for cell in cells:
            trial = self._owners[cell.folder]
            if trial.failure is not None:
                continue
            if reason := cell.divergence():
                self._fail(trial, cell.folder, DivergedError(reason))
            elif cell.done:
                trial.let_go(cell)
        self._stop_some()

    def close(self) -> None:
        for stack in self._stacks:
            stack.close()

    def _note_failures(self) -> None:
        """A stack that cannot be computed is no fault of a configuration: the job fails, and each is tried by
        itself."""
        for stack in self._stacks:
            for folder, error in stack.failed.items():
                if isinstance(error, StackError):
                    raise error
                if self._owners[folder].failure is None:
                    self._fail(self._owners[folder], folder, error)

    def _fail(self, trial: TrialRun, folder: CellFolder, error: Exception) -> None:
        trial.failure = error
        folder.fail(error)
        self._leave(trial)

    def _leave(self, trial: TrialRun) -> None:
        for cell in trial.leave():
            for stack in self._stacks:
                stack.leave(cell)

    def _stop_some(self) -> None:
        """At a rung that all running trials have reached, only the best continue."""
        if self._halving is None:
            return
        measured = {trial.number: trial.measured or (0, 0.0) for trial in self.trials if not trial.ended}
        rounds = {number for number, _ in measured.values()}
        if len(rounds) != 1:
            return
        accuracies = {trial: accuracy for trial, (_, accuracy) in measured.items()}
        stopped = self._halving.stopped(rounds.pop(), accuracies)
        for trial in self.trials:
            if trial.number in stopped:
                trial.stopped = True
                self._leave(trial)
