"""Time as it counts for a cell: cells that are computed together share it."""

from __future__ import annotations

import time


class Clock:
    """Seconds by the wall and of the processor; while n cells share it, every second counts an n-th."""

    def __init__(self) -> None:
        self._cells = 1
        self._counted = (0.0, 0.0)
        self._since = self._now()

    def shared_by(self, cells: int) -> None:
        """From now on, so many cells are computed at the same time."""
        if cells != self._cells:
            self._counted = self._read()
            self._since, self._cells = self._now(), max(1, cells)

    @property
    def wall(self) -> float:
        return self._read()[0]

    @property
    def processor(self) -> float:
        return self._read()[1]

    def _read(self) -> tuple[float, float]:
        wall, processor = (
            counted + (now - since) / self._cells
            for counted, now, since in zip(self._counted, self._now(), self._since, strict=True)
        )
        return wall, processor

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.perf_counter(), time.process_time()
