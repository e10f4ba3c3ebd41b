"""Several cells in one process: those that differ in numbers and seed alone train as one stack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from bench.config.cell import CellConfig
from bench.engine.cell import CellRun
from bench.engine.clock import Clock
from bench.engine.conditions import Conditions
from bench.engine.process_cache import ProcessCache
from bench.engine.stacking.joint import JointRounds
from bench.records.cell_folder import CellFolder

Cells: TypeAlias = Sequence[tuple[CellFolder, CellConfig]]
"""Where each cell is kept, and what it is."""


class CellStack:
    """Opens cells that share data and model, and advances them round by round.

    Every cell has its own folder and records, as if it ran alone. What goes wrong in a cell is the failure of
    that cell, and what goes wrong in a call that computes several is a `StackError` of each of these.
    """

    def __init__(
        self, cells: Cells, conditions: Conditions, process_cache: ProcessCache | None = None
    ) -> None:
        """`process_cache` has what the cells have in common with others of this process."""
        self.running: list[CellRun] = []
        self.failed: dict[CellFolder, Exception] = {}
        """The cells that were given up, and why."""
        self._clock = Clock()
        self._rounds = JointRounds()
        self._process_cache = process_cache or ProcessCache()
        for folder, config in cells:
            if not folder.is_done:
                self._open(folder, config, conditions)

    def _open(self, folder: CellFolder, config: CellConfig, conditions: Conditions) -> None:
        try:
            self.running.append(
                CellRun(folder, config, conditions, process_cache=self._process_cache, clock=self._clock)
            )
        except Exception as error:
            self.failed[folder] = error

    def advance(self) -> None:
        """One more round of the cells that are furthest behind."""
        number = min(cell.rounds_done for cell in self.running)
        cells = [cell for cell in self.running if cell.rounds_done == number]
        self._clock.shared_by(len(cells))
        failed = self._rounds.advance({cell.hosts: cell.advancing() for cell in cells})
        if number == 0:
            self._process_cache.preludes.forget_if_large()
        for cell in cells:
            if error := failed.get(cell.hosts):
                self.failed[cell.folder] = error
            if error or cell.done:
                self.leave(cell)

    def leave(self, cell: CellRun) -> None:
        """Go on without this cell."""
        if cell in self.running:
            self.running.remove(cell)
            self._rounds.forget(cell.hosts)
            cell.close()

    def close(self) -> None:
        for cell in list(self.running):
            self.leave(cell)
