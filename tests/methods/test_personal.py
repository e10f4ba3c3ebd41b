"""Ditto and FedRep beside loops written by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from bench.contract.models import MODELS
from methods.base import Batch, Task, Tree
from methods.core.batches import RaggedBatches, Samples
from methods.core.optimisers import SGD
from methods.ditto import Ditto
from methods.fedrep import FedRep
from tests.kit.contract import (
    PLAIN,
    assert_close,
    samples,
    tiny_task,
)


def test_fedrep_needs_something_to_share() -> None:
    with pytest.raises(ValueError, match="has nothing to share"):
        FedRep().check(tiny_task("head", PLAIN, clients=2, seed=0))


def mlp_round(method: Any, client: Any) -> tuple[Task, Any, Any, Batch, list[Tensor]]:
    task = tiny_task("mlp", SGD(lr=0.1), clients=2, seed=0)
    x, y = samples(8, MODELS["mlp"].shape, "hand")
    order = [torch.arange(8), torch.arange(8).flip(0)]
    state = client(task) if client else method.client(task)
    message = {"model": method.server(task)["model"]}
    reply, kept = method.local(task, state, message, RaggedBatches(Samples(x, y), order, 4))
    return task, reply, kept, Batch(x, y), [part for each in order for part in each.split(4)]


def test_ditto_pulls_the_own_model_towards_the_sent_one() -> None:
    def own_start(task: Task) -> Any:
        return {"model": task.initial.map(lambda leaf: leaf + 0.3)}

    task, reply, kept, data, parts = mlp_round(Ditto(lam=0.7), own_start)
    w = task.initial
    v = own_start(task)["model"]
    y = w
    for at in parts:
        for which in ("v", "y"):
            start = v if which == "v" else y
            leaves = {name: leaf.clone().requires_grad_() for name, leaf in start.items()}
            logits = functional_call(task.model, leaves, (data.x[at],))
            nn.functional.cross_entropy(logits, data.y[at]).backward()
            pull = 0.7 if which == "v" else 0.0
            moved = Tree(
                {
                    name: (leaf - 0.1 * (leaf.grad + pull * (leaf - w[name]))).detach()
                    for name, leaf in leaves.items()
                }
            )
            if which == "v":
                v = moved
            else:
                y = moved
    assert_close(kept["model"], v, tolerance=1e-6)
    assert_close(reply["model"], y, tolerance=1e-6)


def test_fedrep_trains_the_head_first_and_then_the_rest() -> None:
    task, reply, kept, data, parts = mlp_round(FedRep(head_passes=3), None)
    leaves = {name: leaf.clone() for name, leaf in task.initial.items()}

    def descend(at: Tensor, wanted: str) -> None:
        own = [name for name in leaves if name.startswith("classifier.") == (wanted == "head")]
        for name in own:
            leaves[name].requires_grad_()
        logits = functional_call(task.model, leaves, (data.x[at],))
        grads = torch.autograd.grad(
            nn.functional.cross_entropy(logits, data.y[at]), [leaves[name] for name in own]
        )
        for name, grad in zip(own, grads, strict=True):
            leaves[name] = (leaves[name] - 0.1 * grad).detach()

    for at in parts * 3:
        descend(at, "head")
    for at in parts:
        descend(at, "rest")
    assert_close({**reply["model"], **kept["head"]}, leaves, tolerance=1e-6)
    assert not set(reply["model"]) & set(kept["head"])
