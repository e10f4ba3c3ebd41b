"""What a cell asks for while it goes through a round, so that one call can answer several cells."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeAlias

from bench.engine.problem import Problem
from methods.base import State


class Asked(NamedTuple):
    """A function of the method that is to be called for one cell."""

    function: str
    """`local` of all clients of the round, `aggregate`, or `predict` with the global model."""
    problem: Problem
    server: State
    number: int
    """Of the round."""
    given: Any
    """Messages by client, replies, or sets of samples."""
    alone: Callable[[], Any]
    """Computes it by itself: replies, the server's next state, or classes and losses set by set."""


Round: TypeAlias = Generator[Asked, Any, Any]
"""A part of a run that asks for work and is sent what comes of it, until it has its result.

Each request can be answered by itself (`alone`), or together with those of other cells
(`bench.engine.stacking`).
"""


def answered(round_: Round) -> Any:
    """Go through a round of one cell; returns its result."""
    try:
        asked = next(round_)
        while True:
            asked = round_.send(asked.alone())
    except StopIteration as end:
        return end.value
