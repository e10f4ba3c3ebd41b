"""All clients of a round at once: the method's local function under `torch.func.vmap`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.func import vmap

from bench.engine.devices import sent_together
from bench.engine.hosts.base import KEPT_BYTES, Host
from bench.engine.problem import Problem
from methods.base import Message, Reply, Task
from methods.core.batches import PaddedBatches, Samples, stack_orders, steps_of
from methods.core.loss_terms import LossTerms
from methods.core.training import STACKED
from methods.core.tree import Tree, leaves_of

CACHED_FLOATS = 5 * 2**18
"""Inputs of one step of a stack that stay in a processor's cache, with room for everything else."""

Item = TypeVar("Item")


class StackedHost(Host):
    """For small models, where one operation on a stack of clients costs little more than on one client."""

    def __init__(self, problem: Problem, name: str = "0") -> None:
        super().__init__(problem, name)
        self._computed: tuple[Task, Task] | None = None
        self._everybody: Pool | None = None
        self._may_fit = not self._resamples

    def train(self, number: int, messages: Sequence[tuple[int, Message]]) -> list[Reply]:
        contents = dict(messages)
        replies = []
        for pool in self._pools(number, list(contents)):
            group = [(client, contents[client]) for client in contents if client in pool.clients]
            for part in evenly_cut(group, self._at_once(pool)):
                replies += self._train_together(number, part, pool)
        return replies

    def _at_once(self, pool: Pool) -> int:
        """How many clients may be stacked; a GPU is best used by all of them."""
        if pool.x.device.type != "cpu":
            return len(pool.clients)
        floats = pool.x[0].numel() * min(self.problem.batch_size, pool.most)
        return max(1, CACHED_FLOATS // floats)

    def _pools(self, number: int, clients: Sequence[int]) -> Iterator[Pool]:
        """The clients' samples, together if there is room for them, else in groups made each time."""
        if self._may_fit and self._everybody is None:
            self._everybody = self._pool_of_all()
            self._may_fit = self._everybody is not None
        if self._everybody is not None:
            yield self._everybody
        else:
            yield from self._groups(number, clients)

    def _pool_of_all(self) -> Pool | None:
        parts: dict[int, list[Samples]] = {}
        made_bytes = 0
        for client, own in self.problem.train.items():
            samples = self.made(client, number=0)
            made_bytes += 0 if samples is own else samples.bytes
            if made_bytes > KEPT_BYTES:
                return None
            parts[client] = [samples]
        return Pool.of(parts)

    def _groups(self, number: int, clients: Sequence[int]) -> Iterator[Pool]:
        parts: dict[int, list[Samples]] = {}
        size = 0
        for client in clients:
            first = self.made(client, number)
            epochs = len(self.problem.orders(client, number, len(first.y)))
            renewed = range(1, epochs) if self._resamples else ()
            parts[client] = [first, *(self.made(client, number, epoch) for epoch in renewed)]
            size += sum(samples.bytes for samples in parts[client])
            if size > KEPT_BYTES or client == clients[-1]:
                yield Pool.of(parts)
                parts, size = {}, 0

    def _train_together(
        self, number: int, messages: Sequence[tuple[int, Message]], pool: Pool
    ) -> list[Reply]:
        clients = [client for client, _ in messages]
        stack = Stack()
        states = stack.add([self.state(client) for client in clients])
        contents = stack.add([message for _, message in messages])
        parts = stack.add_stacked(self._cut(number, clients, pool))
        task = self._stacked_task(number)
        shape: list[Any] = []

        def local(*own: Tensor) -> tuple[list[Tensor], dict[str, Tensor]]:
            terms = LossTerms() if task.records_losses else None
            prepare = self.problem.recipe.preparation(terms)
            batches = PaddedBatches(x=pool.x, y=pool.y, most=pool.most, prepare=prepare, **fill(parts, own))
            state, message = fill(states, own), fill(contents, own)
            result = self._exchanges[-1].local(task, state, message, batches)
            shape[:] = result
            return list(leaves_of(result)), {} if terms is None else terms.means()

        outputs, noted = vmap(local)(*stack.tensors)
        sound = finite_rows(outputs, len(clients))
        columns = [output.unbind(0) for output in outputs]
        replies = []
        for k, client in enumerate(clients):
            leaves = iter([column[k] for column in columns])
            content, state = (refill(nest, leaves) for nest in shape)
            reply = self.finish(client, pool.clients[client].size, content, state, sound[k])
            terms = {name: means[k] for name, means in noted.items()}
            replies.append(reply._replace(terms=terms) if terms else reply)
        return replies

    def _stacked_task(self, number: int) -> Task:
        task = self.task_in(number)
        if self._computed is None or self._computed[0] is not task:
            self._computed = task, task.computed(STACKED)
        return self._computed[1]

    def _cut(self, number: int, clients: list[int], pool: Pool) -> dict[str, Tensor | None]:
        counts = [pool.clients[client].size for client in clients]
        starts = [pool.clients[client].start for client in clients]
        orders = [
            pool.positions(count, self.problem.orders(client, number, count))
            for client, count in zip(clients, counts, strict=True)
        ]
        size = min(self.problem.batch_size, max(counts))
        order, mask, live = stack_orders(orders, starts, size)
        parts: dict[str, Tensor | None] = {
            "order": order,
            "mask": mask,
            "live": live,
            "start": torch.tensor(starts),
            "steps": torch.tensor(steps_of(orders, size)),
            "samples": torch.tensor(counts),
            "key": torch.tensor([self.problem.key(client, number) for client in clients]),
        }
        return sent_together(parts, pool.y.device)


def evenly_cut(items: list[Item], most: int) -> Iterator[list[Item]]:
    """As few parts as there can be with at most `most` items each, as equal as they can be."""
    parts = -(-len(items) // most)
    bounds = [round(part * len(items) / parts) for part in range(parts + 1)]
    return (items[start:end] for start, end in pairwise(bounds))


class Place(NamedTuple):
    """Where a client's samples are in a pool."""

    start: int
    size: int


@dataclass(frozen=True)
class Pool:
    """The samples of several clients, one after the other."""

    x: Tensor
    y: Tensor
    clients: dict[int, Place]
    renewed: bool
    """Whether every epoch has samples of its own, behind each other."""

    @classmethod
    def of(cls, parts: Mapping[int, Sequence[Samples]]) -> Pool:
        """`parts`: client → its samples, of every epoch or of all epochs."""
        pieces = [samples for epochs in parts.values() for samples in epochs]
        places, start = {}, 0
        for client, epochs in parts.items():
            places[client] = Place(start, len(epochs[0].y))
            start += sum(len(samples.y) for samples in epochs)
        renewed = any(len(epochs) > 1 for epochs in parts.values())
        return cls(torch.cat([x for x, _ in pieces]), torch.cat([y for _, y in pieces]), places, renewed)

    def positions(self, count: int, orders: list[Tensor]) -> list[Tensor]:
        """A client's visiting orders, counted from its first sample."""
        return [order + epoch * count for epoch, order in enumerate(orders)] if self.renewed else orders

    @cached_property
    def most(self) -> int:
        return max(place.size for place in self.clients.values())


class Slot(NamedTuple):
    """Stands in a nest for a tensor that differs between the clients."""

    position: int


class Stack:
    """Collects what differs between the clients; what they share is neither copied nor stacked."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []

    def add(self, items: Sequence[Any]) -> Any:
        """One nest for all clients: shared tensors as they are, the others stacked, with slots in place."""
        first = items[0]
        if all(item is first for item in items):
            return first
        if isinstance(first, Tensor):
            return self._slot(torch.stack(list(items)))
        return type(first)({key: self.add([item[key] for item in items]) for key in first})

    def add_stacked(self, nest: dict[str, Tensor | None]) -> dict[str, Slot | None]:
        return {key: None if tensor is None else self._slot(tensor) for key, tensor in nest.items()}

    def _slot(self, tensor: Tensor) -> Slot:
        self.tensors.append(tensor)
        return Slot(len(self.tensors) - 1)


def fill(nest: Any, tensors: Sequence[Tensor]) -> Any:
    """The nest with every slot replaced by its tensor."""
    if isinstance(nest, Slot):
        return tensors[nest.position]
    if isinstance(nest, (dict, Tree)):
        return type(nest)({key: fill(item, tensors) for key, item in nest.items()})
    return nest


def refill(nest: Any, leaves: Iterator[Tensor]) -> Any:
    """A nest of the same shape with other leaves, in order."""
    if isinstance(nest, (dict, Tree)):
        return type(nest)({key: refill(item, leaves) for key, item in nest.items()})
    return next(leaves)


def finite_rows(tensors: Sequence[Tensor], count: int) -> list[bool]:
    """Client by client whether all its numbers are finite."""
    sums = [leaf.reshape(count, -1).sum(dim=1) for leaf in tensors if leaf.is_floating_point()]
    return torch.isfinite(torch.stack(sums)).all(dim=0).tolist() if sums else [True] * count
