"""Exchanges before round 1 that are the same in several cells, and computed once.

Cells that differ in hyperparameters have the same data, and often the same statistics of it: those of GGEUR
take longer than several rounds of training, and most of its hyperparameters come into play after them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bench.engine.problem import Problem
from methods.base import Exchange, State
from methods.core.optional import FoldsReplies
from methods.core.tree import Tree, leaves_of

KEPT_BYTES = 2**28
"""Of what exchanges have led to, at most, for cells that come later."""


class Exchanged(NamedTuple):
    """An exchange, the states of server and clients before and after it, and its traffic."""

    problem: Problem
    exchange: Exchange | FoldsReplies
    before: State
    after: State
    traffic: dict[str, int]


class SharedPreludes:
    """What the exchanges of some cells have led to."""

    def __init__(self, most_bytes: int = KEPT_BYTES) -> None:
        self._most_bytes = most_bytes
        self._known: list[Exchanged] = []
        self._sizes: dict[int, int] = {}
        """Of every tensor that is kept, in bytes; some are part of several states."""

    def add(self, done: Exchanged) -> None:
        self._known.append(done)
        self._sizes |= {id(leaf): leaf.nbytes for leaf in leaves_of(done.after)}

    def find(
        self, problem: Problem, exchange: Exchange | FoldsReplies, before: State | None
    ) -> Exchanged | None:
        """An equal exchange with the same data and model, from the same states."""
        return next(
            (
                known
                for known in self._known
                if known.problem.train is problem.train
                and known.problem.task.initial is problem.task.initial
                and known.exchange == exchange
                and are_same(known.before, before)
            ),
            None,
        )

    def forget(self) -> None:
        self._known.clear()
        self._sizes.clear()

    def forget_if_large(self) -> None:
        """For when all cells that train now have had their exchanges."""
        if sum(self._sizes.values()) > self._most_bytes:
            self.forget()


def are_same(one: Any, other: Any) -> bool:
    """Whether two nests of states have the same entries and numbers."""
    if one is other:
        return True
    if isinstance(one, Tensor):
        return isinstance(other, Tensor) and one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, (dict, Tree)) and isinstance(other, (dict, Tree)):
        return one.keys() == other.keys() and all(are_same(one[key], other[key]) for key in one)
    return False
