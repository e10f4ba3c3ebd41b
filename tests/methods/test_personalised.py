"""Refusals of methods that divide a model, and Per-FedAvg's gradient against second derivatives."""

from __future__ import annotations

import pytest
import torch

from methods.base import Batch, FedAlgorithm, Tree, cross_entropy
from methods.ccvr import CCVR
from methods.fedper import FedPer
from methods.fedrep import FedRep
from methods.lg_fedavg import LGFedAvg
from methods.per_fedavg import PerFedAvg, halves
from tests.kit.contract import PLAIN, tiny_task
from tests.kit.tiny import a_batch, mlp_task


@pytest.mark.parametrize("method", [FedRep(), CCVR()], ids=lambda method: method.label)
def test_a_classifier_that_is_not_trained_is_refused(method: FedAlgorithm) -> None:
    with pytest.raises(ValueError, match=r"^trains the classifier, which is fixed here"):
        method.check(tiny_task("adapter", PLAIN, 3, 0))
    method.check(tiny_task("mlp", PLAIN, 3, 0))


@pytest.mark.parametrize("kind", [FedPer, LGFedAvg])
def test_a_model_that_cannot_be_divided_is_refused(kind: type[FedAlgorithm]) -> None:
    with pytest.raises(ValueError, match="divides a model into classifier and the rest"):
        kind().check(tiny_task("head", PLAIN, clients=2, seed=0))


def test_fedrep_needs_something_to_share() -> None:
    with pytest.raises(ValueError, match="has nothing to share"):
        FedRep().check(tiny_task("head", PLAIN, clients=2, seed=0))


def test_the_hessian_free_gradient_is_that_of_the_loss_after_a_step() -> None:
    """∂/∂w f(w − α∇f(w; D); D′), by PyTorch's second derivatives in double precision."""
    task, data, alpha = mlp_task(), a_batch(), 0.3
    model = task.model.double()
    batch = Batch(data.x.double(), data.y)
    w = task.initial.map(torch.Tensor.double)
    names = list(w)

    def loss(params: Tree, part: Batch) -> torch.Tensor:
        return cross_entropy(torch.func.functional_call(model, params.as_dict(), (part.x,)), part)

    leaves = [leaf.clone().requires_grad_() for leaf in w.values()]
    first, second = halves(batch)
    inner = torch.autograd.grad(loss(Tree(zip(names, leaves, strict=True)), first), leaves, create_graph=True)
    after = [leaf - alpha * each for leaf, each in zip(leaves, inner, strict=True)]
    exact = torch.autograd.grad(loss(Tree(zip(names, after, strict=True)), second), leaves)
    found = {
        variant: PerFedAvg(alpha=alpha, delta=1e-4, variant=variant).meta_gradient(task, w, loss, batch)
        for variant in ("hessian_free", "first_order")
    }
    gaps = {
        variant: max(float((a - b).abs().max()) for a, b in zip(grads.values(), exact, strict=True))
        for variant, grads in found.items()
    }
    assert gaps["hessian_free"] < 1e-6 < 1e-3 < gaps["first_order"]
