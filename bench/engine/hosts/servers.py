"""The servers of several cells as one: states that are stacked, and numbers in which their methods differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from torch import Tensor

from bench.engine.hosts.stack import Stack, fill
from bench.engine.problem import Problem
from bench.engine.variation import Setting, Variation
from methods.base import State


class OfServer(Protocol):
    """Something that is asked of a cell's server."""

    @property
    def problem(self) -> Problem: ...

    @property
    def server(self) -> State: ...


class Server(NamedTuple):
    """One of them, seen from inside of the stack."""

    setting: Setting
    state: State


class StackedServers:
    """Raises an AlikeError if the cells differ in more than numbers."""

    def __init__(self, cells: Sequence[OfServer]) -> None:
        self.stack = Stack(1)
        settings = [Setting.of(cell.problem.method, cell.problem.task) for cell in cells]
        self._first, self._variation = settings[0], Variation.among(settings)
        self._states = self.stack.add([[cell.server for cell in cells]])
        tensors = self._variation.tensors(next(iter(cells[0].problem.task.initial.values())))
        self._numbers = self.stack.add_by_client({str(at): each for at, each in enumerate(tensors)})

    def one(self, own: Sequence[Tensor]) -> Server:
        """The server that has these of the stack's tensors."""
        numbers = list(fill(self._numbers, own).values())
        return Server(self._variation.applied(self._first, numbers), fill(self._states, own))
