"""Writing to MLflow beside the run, in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, Self

from bench.tracking.tracker import TrackingError

GIVE_UP: Final = 3
"""Failures in a row after which MLflow is left alone: one that does not answer takes a minute each time."""


class Background:
    """Runs tasks one after the other; a failure of MLflow is reported once, at the end."""

    def __init__(self, say: Callable[[str], None], items: str) -> None:
        self._say, self._items = say, items
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._tasks: list[Future[None]] = []
        self._in_a_row: list[TrackingError] = []

    def __enter__(self) -> Self:
        return self

    def submit(self, task: Callable[..., None], *arguments: Any) -> None:
        self._tasks.append(self._pool.submit(self._attempt, task, *arguments))

    def _attempt(self, task: Callable[..., None], *arguments: Any) -> None:
        if len(self._in_a_row) >= GIVE_UP:
            raise self._in_a_row[-1]
        try:
            task(*arguments)
        except TrackingError as error:
            self._in_a_row.append(error)
            raise
        self._in_a_row.clear()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=kind is not None)
        errors = [task.exception() for task in self._tasks if task.done() and not task.cancelled()]
        problems = [error for error in errors if error is not None]
        unexpected = [error for error in problems if not isinstance(error, TrackingError)]
        if unexpected and kind is None:
            raise unexpected[0]
        if problems:
            self._say(f"warning: {len(problems)} {self._items} are not in MLflow: {problems[0]}")
