"""Progress of a run or a search that was started from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from bench.observer import Item, View, Words


class PrintedView:
    """Prints a line for every cell or trial that ends."""

    def __init__(self, items: Sequence[Item], words: Words, say: Callable[[str], None]) -> None:
        self._names = {item.key: item.name for item in items}
        self._scores: dict[str, float | None] = {}
        self._words, self._say = words, say
        self._ended = 0

    def expect(self, item: Item) -> None:
        self._names[item.key] = item.name

    def advanced(self, key: str, rounds: int, score: float | None) -> None:
        self._scores[key] = score

    def finished(self, key: str, note: str = "") -> None:
        score = self._scores.get(key)
        told = f" {self._words.score} {100 * score:.1f}" if score is not None else ""
        self._print(f"{self._names[key]}{told}{f' {note}' if note else ''}")

    def failed(self, key: str, reason: str) -> None:
        self._print(f"FAILED {self._names[key]}: {reason}")

    def _print(self, text: str) -> None:
        self._ended += 1
        self._say(f"[{self._ended}/{len(self._names)}] {text}")


class PrintingObserver:
    """Prints what happens, or nothing at all."""

    def __init__(self, progress: bool) -> None:
        self._progress = progress

    def say(self, text: str) -> None:
        if self._progress:
            print(text, flush=True)

    @contextmanager
    def view(
        self, title: str, items: Sequence[Item], done: int, words: Words | None = None
    ) -> Iterator[View]:
        yield PrintedView(items, words or Words(), self.say)


QUIET = PrintingObserver(progress=False)
