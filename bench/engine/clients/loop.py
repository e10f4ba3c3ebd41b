"""The executor `loop`: one client after the other."""

from __future__ import annotations

from collections.abc import Sequence

from bench.engine.clients.base import Host
from bench.engine.problem import Problem
from methods.base import Message, Reply
from methods.core.batches import Samples


class LoopHost(Host):
    """One client after the other: the reference, and the one to debug with."""

    executor = "loop"

    def __init__(self, problem: Problem, name: str = "0") -> None:
        super().__init__(problem, name)
        self._kept: dict[int, Samples] = {}
        self._room_left = self.room

    def train(self, number: int, messages: Sequence[tuple[int, Message]]) -> list[Reply]:
        last = len(self._exchanges) - 1
        works = [
            self.work(last, number, client, message, self._samples(client, number))
            for client, message in messages
        ]
        return self.judged(works)

    def _samples(self, client: int, number: int) -> Samples:
        if client in self._kept:
            return self._kept[client]
        samples = self.made(client, number)
        if not self.resamples and samples.bytes <= self._room_left:
            self._kept[client] = samples
            self._room_left -= samples.bytes if samples is not self.problem.train[client] else 0
        return samples
