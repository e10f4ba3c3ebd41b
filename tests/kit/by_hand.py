"""One client's round on the tiny MLP, for tests that compute it again step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from bench.contract.models import MODELS
from methods.base import FedAlgorithm, State, Task, Tree
from methods.core.batches import RaggedBatches, Samples
from methods.core.optimisers import SGD
from tests.kit.contract import samples, tiny_task

RATE = 0.1


class Round(NamedTuple):
    """What went into a client's work and what came out of it."""

    task: Task
    state: State
    message: dict[str, Any]
    reply: dict[str, Any]
    kept: State
    x: Tensor
    y: Tensor
    parts: list[Tensor]
    """The samples of every step, in order."""


def mlp_round(
    method: FedAlgorithm,
    state: Callable[[Task], State] | None = None,
    message: Callable[[Task], dict[str, Any]] | None = None,
) -> Round:
    """Two epochs of eight samples, four per step, with plain SGD of rate 0.1."""
    task = tiny_task("mlp", SGD(lr=RATE), clients=2, seed=0)
    x, y = samples(8, MODELS["mlp"].shape, "hand")
    order = [torch.arange(8), torch.arange(8).flip(0)]
    own = state(task) if state else method.client(task)
    sent = message(task) if message else method.down(task, method.server(task), 0)
    reply, kept = method.local(task, own, sent, RaggedBatches(Samples(x, y), order, 4))
    return Round(task, own, sent, reply, kept, x, y, [part for each in order for part in each.split(4)])


def logits(task: Task, params: Mapping[str, Tensor], x: Tensor) -> Tensor:
    found: Tensor = functional_call(task.model, dict(params), (x,))
    return found


def slope(task: Task, params: Mapping[str, Tensor], x: Tensor, y: Tensor) -> Tree:
    """The gradient of the mean cross-entropy."""
    leaves = {name: leaf.detach().clone().requires_grad_() for name, leaf in params.items()}
    loss = nn.functional.cross_entropy(logits(task, leaves, x), y)
    return Tree(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))


def shifted(by: float) -> Callable[[Task], Tree]:
    """A model unlike the initial one."""
    return lambda task: task.initial.map(
        lambda leaf: leaf + by * torch.linspace(-1, 1, leaf.numel()).view_as(leaf)
    )
