"""How drivers tell what happens: to a terminal, a log or a notebook, which they know nothing about."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Item:
    """A cell of a run, or a trial of a search."""

    key: str
    name: str
    rounds: int


@dataclass(frozen=True)
class Words:
    """How a view speaks of its items and their scores."""

    items: str = "cells"
    score: str = "AVG"


class View(Protocol):
    """Shows the progress of items, from its opening to its closing."""

    def expect(self, item: Item) -> None:
        """Announce an item that was not known at the start; nothing happens if it is known already."""

    def advanced(self, key: str, rounds: int, score: float | None) -> None: ...

    def finished(self, key: str, note: str = "") -> None: ...

    def failed(self, key: str, reason: str) -> None: ...


class Observer(Protocol):
    """Is told everything that the user should know of a run or a search."""

    def say(self, text: str) -> None:
        """Show a sentence."""

    def view(
        self, title: str, items: Sequence[Item], done: int, words: Words | None = None
    ) -> AbstractContextManager[View]:
        """Show the progress of these items; `done` more were finished before."""
