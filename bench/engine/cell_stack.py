"""Several cells in one process: those that differ in numbers alone train as one stack."""

from __future__ import annotations

from collections.abc import Iterable

from bench.engine.cell_run import CellRun
from bench.engine.clock import Clock
from bench.engine.conditions import Conditions
from bench.engine.federation import Round
from bench.engine.hosts.groups import HostGroups, Request
from bench.records.cell_folder import CellFolder
from bench.records.config import CellConfig


class CellStack:
    """Opens cells that share data, model and seed, and advances them round by round.

    Every cell has its own folder and records, as if it ran alone. What cannot be computed together is
    computed one cell after the other, and what goes wrong in a cell is the failure of that cell alone.
    """

    def __init__(self, cells: Iterable[tuple[CellFolder, CellConfig]], conditions: Conditions) -> None:
        self.running: list[CellRun] = []
        self.failed: dict[CellFolder, Exception] = {}
        """The cells that were given up, and why."""
        self._clock = Clock()
        self._groups = HostGroups()
        for folder, config in cells:
            if not folder.is_done:
                self._open(folder, config, conditions)

    def _open(self, folder: CellFolder, config: CellConfig, conditions: Conditions) -> None:
        like = self.running[0] if self.running else None
        try:
            self.running.append(CellRun(folder, config, conditions, like=like, clock=self._clock))
        except Exception as error:
            self.failed[folder] = error

    def advance(self) -> None:
        """One more round of the cells that are furthest behind."""
        number = min(cell.rounds_done for cell in self.running)
        cells = [cell for cell in self.running if cell.rounds_done == number]
        self._clock.shared_by(len(cells))
        rounds: dict[CellRun, Round[None]] = {}
        requests: list[Request] = []
        for cell in cells:
            round_ = cell.advancing()
            try:
                requests.append(Request(cell.hosts, next(round_)))
            except Exception as error:
                self._give_up(cell, error)
            else:
                rounds[cell] = round_
        for (cell, round_), answer in zip(rounds.items(), self._groups.run(requests), strict=True):
            try:
                if isinstance(answer, Exception):
                    raise answer
                round_.send(answer)
            except StopIteration:
                if cell.done:
                    self.leave(cell)
            except Exception as error:
                self._give_up(cell, error)

    def leave(self, cell: CellRun) -> None:
        """Go on without this cell."""
        if cell in self.running:
            self.running.remove(cell)
            self._groups.forget(cell.hosts)
            cell.close()

    def close(self) -> None:
        for cell in list(self.running):
            self.leave(cell)

    def _give_up(self, cell: CellRun, error: Exception) -> None:
        self.failed[cell.folder] = error
        self.leave(cell)
