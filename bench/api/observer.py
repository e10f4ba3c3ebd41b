"""Progress of a run or a search that was started from Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench.observer import Item, View, Words


class QuietView:
    """Shows nothing."""

    def expect(self, item: Item) -> None: ...

    def advanced(self, key: str, rounds: int, score: float | None) -> None: ...

    def finished(self, key: str, note: str = "") -> None: ...

    def failed(self, key: str, reason: str) -> None: ...


class PrintedView(QuietView):
    """Prints a line for every cell or trial that ends."""

    def __init__(self, items: Sequence[Item], words: Words) -> None:
        self._names = {item.key: item.name for item in items}
        self._scores: dict[str, float | None] = {}
        self._words = words
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
        print(f"[{self._ended}/{len(self._names)}] {text}", flush=True)


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
        yield PrintedView(items, words or Words()) if self._progress else QuietView()
