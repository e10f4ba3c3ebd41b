"""Samples that only pad a batch, and steps that only pad a round, change nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from bench.contract.fixtures import CLASSES
from bench.contract.method_under_test import MethodUnderTest, NotApplicableError, raised
from bench.contract.nests import gaps, some
from bench.contract.rule import Rule
from bench.contract.runs import run
from bench.engine.clients.loop import LoopHost
from bench.engine.problem import Problem
from bench.engine.stacking.stacked_tensors import Stack, fill, refill
from methods.base import Batch, Batches, Message, State
from methods.core.batches import PaddedBatches, stack_orders, steps_of
from methods.core.training import STACKED
from methods.core.tree import leaves_of

SIZES = (7, 140)
"""The smaller client has padded samples and steps; the larger needs more than one piece of `Batches.once`."""
BATCH = 16
GARBAGE = 10.0


class FilledBatches:
    """Padded batches in which the samples that are not real have other contents."""

    def __init__(self, inner: PaddedBatches, filling: Tensor, label: int) -> None:
        self._inner, self._filling, self._label = inner, filling, label

    @property
    def steps(self) -> Tensor:
        return self._inner.steps

    @property
    def samples(self) -> Tensor:
        return self._inner.samples

    def __iter__(self) -> Iterator[Batch]:
        return (self._filled(batch) for batch in self._inner)

    def once(self) -> Iterator[Batch]:
        return (self._filled(batch) for batch in self._inner.once())

    def all(self) -> Batch:
        return Batch.joined(self.once())

    def _filled(self, batch: Batch) -> Batch:
        if batch.mask is None:
            return batch
        real = batch.mask > 0
        x = torch.where(real.view(-1, *(1 for _ in batch.x.shape[1:])), batch.x, self._filling)
        return batch._replace(x=x, y=torch.where(real, batch.y, self._label))


def _padding(subject: MethodUnderTest) -> Iterator[str]:
    subject.require_several_clients()
    problem = subject.problem(sizes=SIZES, batch_size=BATCH)
    if problem.task.has_batch_norm:
        raise NotApplicableError("batch norm cannot be stacked")
    host = LoopHost(problem)
    federation = run(problem, host, rounds=1)
    method, task = problem.method, problem.task
    messages = [(client, method.down(task, federation.server, client)) for client in problem.train]
    states = [host.state(client) for client in problem.train]
    x = problem.train[0].x
    fillings = (
        (x[0], 0),
        (GARBAGE * torch.randn(x[0].shape, generator=task.generator("padding")), CLASSES - 1),
    )
    try:
        one, other = (_results(problem, states, messages, *filling) for filling in fillings)
    except Exception as error:
        raise NotApplicableError(
            f"the method cannot be stacked: it raises {raised(subject, error)}"
        ) from error
    if changed := gaps(one, other, tolerance=1e-6):
        yield (
            f"local lets padding count: {some(list(changed))} changes by up to {max(changed.values()):.2g} "
            "when only samples that pad a batch change; use batch.mean(per_sample) or batch.real"
        )


def _results(
    problem: Problem,
    states: Sequence[State],
    messages: Sequence[tuple[int, Message]],
    filling: Tensor,
    label: int,
) -> dict[str, Any]:
    """All clients' replies and private states of one round, stacked, with this content as padding."""
    clients = [client for client, _ in messages]
    data = [problem.train[client] for client in clients]
    counts = [len(each.y) for each in data]
    starts = [sum(counts[:k]) for k in range(len(counts))]
    orders = [problem.orders(client, 2, count) for client, count in zip(clients, counts, strict=True)]
    order, mask, live = stack_orders(orders, starts, problem.batch_size)
    stack = Stack(cells=1)
    own = stack.add([list(states)])
    contents = stack.add([[message for _, message in messages]])
    parts = stack.add_by_client(
        {
            "order": order,
            "mask": mask,
            "live": live,
            "start": torch.tensor(starts),
            "steps": torch.tensor(steps_of(orders, problem.batch_size)),
            "samples": torch.tensor(counts),
            "key": torch.tensor([problem.key(client, 2) for client in clients]),
        }
    )
    x, y = torch.cat([each.x for each in data]), torch.cat([each.y for each in data])
    task = problem.task.computed(STACKED)
    shape: list[Any] = []

    def local(*tensors: Tensor) -> list[Tensor]:
        padded = PaddedBatches(x=x, y=y, most=max(counts), **fill(parts, tensors))
        batches: Batches = FilledBatches(padded, filling, label)
        shape[:] = problem.method.local(task, fill(own, tensors), fill(contents, tensors), batches)
        return list(leaves_of(shape))

    columns = [output.unbind(0) for output in stack.mapped(local)]
    results = {}
    for k, client in enumerate(clients):
        leaves = iter([column[k] for column in columns])
        reply, state = (refill(nest, leaves) for nest in shape)
        results[str(client)] = {"reply": reply, "state": state}
    return results


PADDING = Rule(
    "padding",
    "Samples that only pad a batch, and steps that only pad a round, change nothing.",
    "Padding",
    _padding,
)
