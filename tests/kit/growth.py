"""Memory and open files of processes over the time of a long run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import psutil

SECONDS = 1.0
"""Between two looks."""


@dataclass(frozen=True)
class Sample:
    done: int
    """Cells done by then."""
    megabytes: float
    files: int


@dataclass(frozen=True)
class Growth:
    """What changed from the middle third of the cells to the last one."""

    middle: Sample
    last: Sample

    @property
    def megabytes_per_hundred(self) -> float:
        """Per hundred cells."""
        return 100 * (self.last.megabytes - self.middle.megabytes) / (self.last.done - self.middle.done)

    def __str__(self) -> str:
        return (
            f"{self.middle.megabytes:.0f} → {self.last.megabytes:.0f} MB "
            f"({self.megabytes_per_hundred:+.1f} MB per 100 cells), "
            f"{self.middle.files} → {self.last.files} open files"
        )


class Sampler:
    """Looks at processes again and again."""

    def __init__(self, done: Callable[[], int], processes: Callable[[], Sequence[int]]) -> None:
        self._done, self._processes = done, processes
        self.samples: dict[int, list[Sample]] = {}
        """Process → what was seen of it."""

    def look(self) -> None:
        done = self._done()
        for pid in self._processes():
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(pid)
                seen = Sample(done, process.memory_info().rss / 2**20, process.num_fds())
                self.samples.setdefault(pid, []).append(seen)

    def growth(self, pid: int, total: int) -> Growth:
        """Means over the middle and the last third of so many cells."""
        thirds = [
            [each for each in self.samples[pid] if first * total / 3 <= each.done < (first + 1) * total / 3]
            for first in (1, 2)
        ]
        return Growth(*map(_mean, thirds))


def _mean(samples: Sequence[Sample]) -> Sample:
    return Sample(
        round(fmean(each.done for each in samples)),
        fmean(each.megabytes for each in samples),
        round(fmean(each.files for each in samples)),
    )


@contextlib.contextmanager
def sampled(sampler: Sampler) -> Iterator[None]:
    over = threading.Event()

    def watch() -> None:
        while not over.wait(SECONDS):
            sampler.look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
