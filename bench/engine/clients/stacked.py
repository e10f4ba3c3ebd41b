"""All clients of a round at once: the method's local function under `torch.func.vmap`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.engine.clients.base import Host, merged
from bench.engine.problem import Problem
from bench.engine.stacking.call import train_together
from bench.engine.stacking.differing_numbers import setting
from bench.engine.stacking.replies import StackedReplies
from bench.engine.stacking.samples import Pool
from bench.startup.memory import available_bytes
from methods.base import FedAlgorithm, Message, Reply, SamplesByIndex, Task
from methods.core.batches import Samples
from methods.core.training import STACKED, STACKED_ON_GPU

CACHED_FLOATS = 5 * 2**18
"""Inputs of one step of a stack that stay in a processor's cache, with room for everything else."""
SPARE = 4
"""Samples must not take more than this fraction of what the machine has left: other cells make some, too."""


class StackedHost(Host):
    """For small models, where one operation on a stack of clients costs little more than on one client."""

    executor = "stacked"

    def __init__(self, problem: Problem, name: str = "0") -> None:
        super().__init__(problem, name)
        self._computed: tuple[Task, Task] | None = None
        self._setting: tuple[Task, FedAlgorithm] | None = None
        self._everybody: Pool | None = None
        self._may_fit = not self.resamples
        self._other_source: StackedHost | None = None  # not itself: a cycle would keep samples in memory

    @property
    def source(self) -> StackedHost:
        """The host whose samples the clients train on: this one, or one that makes the same."""
        return self if self._other_source is None else self._other_source

    def share_samples(self, other: StackedHost) -> None:
        """Train on the samples of another host, which makes the same."""
        self._other_source, self._everybody = other.source, None

    def train(self, number: int, messages: Sequence[tuple[int, Message]]) -> Sequence[Reply]:
        ((replies,),) = train_together(number, [{self: dict(messages)}])
        return replies

    def keep(self, replies: StackedReplies) -> None:
        """Change the private states of clients as they have computed it together with these replies."""
        for client, changes in replies.changes():
            self._states[client] = merged(self.state(client), changes)

    def setting(self, number: int) -> FedAlgorithm:
        """The method with the optimiser of the round."""
        task = self.task_in(number)
        if self._setting is None or self._setting[0] is not task:
            self._setting = task, setting(self.problem.method, task.optimiser)
        return self._setting[1]

    def at_once(self, pool: Pool) -> int:
        """How many clients may be stacked; a GPU is best used by all of them."""
        if pool.device.type != "cpu":
            return len(pool.rows)
        floats = pool.width * min(self.problem.batch_size, pool.most)
        return max(1, CACHED_FLOATS // floats)

    def pools(self, number: int, clients: Sequence[int]) -> Iterator[Pool]:
        """The clients' samples, together if there is room for them, else in groups made each time."""
        everybody = self.whole_pool()
        if everybody is not None:
            yield everybody
        else:
            yield from self.source._groups(number, clients)

    def whole_pool(self) -> Pool | None:
        """The samples of all clients; None if there is no room for them, or they change."""
        if self.source is not self:
            return self.source.whole_pool()
        if self._may_fit and self._everybody is None:
            self._everybody = self._pool_of_all()
            self._may_fit = self._everybody is not None
        return self._everybody

    def _pool_of_all(self) -> Pool | None:
        made: dict[int, Samples | SamplesByIndex] = {}
        on_cpu = self.problem.task.device.type == "cpu"
        made_bytes, room = 0, min(self.room, available_bytes() // SPARE) if on_cpu else self.room
        for client, own in self.problem.train.items():
            made[client] = self.made_late(client, number=0)
            made_bytes += 0 if made[client] is own else made[client].bytes
            if made_bytes > room:
                return None
        if self.makes:
            return Pool.of_made(made)
        return Pool.of({client: [own] for client, own in self.problem.train.items()})

    def _groups(self, number: int, clients: Sequence[int]) -> Iterator[Pool]:
        parts: dict[int, list[Samples]] = {}
        size = 0
        for client in clients:
            first = self.made(client, number)
            epochs = len(self.problem.orders(client, number, len(first.y)))
            renewed = range(1, epochs) if self.resamples else ()
            parts[client] = [first, *(self.made(client, number, epoch) for epoch in renewed)]
            size += sum(samples.bytes for samples in parts[client])
            if size > self.room or client == clients[-1]:
                yield Pool.of(parts)
                parts, size = {}, 0

    def stacked_task(self, number: int) -> Task:
        task = self.task_in(number)
        if self._computed is None or self._computed[0] is not task:
            self._computed = task, task.computed(STACKED if task.device.type == "cpu" else STACKED_ON_GPU)
        return self._computed[1]
