"""All clients of a round at once: the method's local function under `torch.func.vmap`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.func import vmap

from bench.engine.hosts import Host, Problem
from methods.base import Message, Reply
from methods.parts.batches import PaddedBatches, stack_orders
from methods.parts.training import STACKED
from methods.parts.tree import Tree, leaves_of


class StackedHost(Host):
    """For small models, where one operation on a stack of clients costs little more than on one client."""

    def __init__(self, problem: Problem, name: str = "0") -> None:
        super().__init__(problem, name)
        self._phases = problem.phases(problem.task.computed(STACKED))
        samples = list(problem.train.values())
        self._x = torch.cat([x for x, _ in samples])
        self._y = torch.cat([y for _, y in samples])
        counts = [len(y) for _, y in samples]
        starts = [sum(counts[:k]) for k in range(len(counts))]
        self._rows = {client: row for row, client in enumerate(problem.train)}
        self._counts, self._starts, self._most = counts, starts, max(counts)

    def run(self, phase: int, number: int, messages: Sequence[tuple[int, Message]]) -> list[Reply]:
        clients = [client for client, _ in messages]
        stack = Stack()
        states = stack.add([self.state(client) for client in clients])
        contents = stack.add([message for _, message in messages])
        parts = stack.add_stacked(self._cut(number, clients))
        shape: list[Any] = []

        def local(*own: Tensor) -> list[Tensor]:
            batches = PaddedBatches(x=self._x, y=self._y, most=self._most, **fill(parts, own))
            result = self._phases[phase].local(fill(states, own), fill(contents, own), batches)
            shape[:] = result
            return list(leaves_of(result))

        outputs = vmap(local)(*stack.tensors)
        sound = finite_rows(outputs, len(clients))
        columns = [output.unbind(0) for output in outputs]
        replies = []
        for k, client in enumerate(clients):
            leaves = iter([column[k] for column in columns])
            content, state = (refill(nest, leaves) for nest in shape)
            replies.append(self.finish(client, content, state, sound[k]))
        return replies

    def _cut(self, number: int, clients: list[int]) -> dict[str, Tensor | None]:
        rows = [self._rows[client] for client in clients]
        counts = [self._counts[row] for row in rows]
        starts = [self._starts[row] for row in rows]
        orders = [self.problem.orders(client, number) for client in clients]
        size = min(self.problem.batch_size, max(counts))
        order, mask, live = stack_orders(orders, counts, starts, size)
        parts: dict[str, Tensor | None] = {
            "order": order,
            "mask": mask,
            "live": live,
            "start": torch.tensor(starts),
            "steps": torch.tensor([self.problem.epochs * -(-count // size) for count in counts]),
            "samples": torch.tensor(counts),
        }
        return {key: None if part is None else part.to(self._y.device) for key, part in parts.items()}


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
