"""FedPer, LG-FedAvg, APFL, pFedMe, Per-FedAvg and FedRoD beside loops written by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from methods.apfl import APFL
from methods.base import Batch, Tree, cross_entropy
from methods.ccvr import CCVR
from methods.fedavg import FedAvg
from methods.fedper import FedPer
from methods.fedrep import FedRep
from methods.fedrod import FedRoD
from methods.lg_fedavg import LGFedAvg
from methods.per_fedavg import PerFedAvg, halves
from methods.pfedme import PFedMe
from tests.kit.by_hand import RATE, logits, mlp_round, shifted, slope
from tests.kit.contract import PLAIN, assert_close, tiny_task

HEAD = ("classifier.weight", "classifier.bias")


@pytest.mark.parametrize("method", [FedRep(), CCVR()], ids=lambda method: method.label)
def test_a_classifier_that_is_not_trained_is_refused(method: Any) -> None:
    with pytest.raises(ValueError, match=r"^trains the classifier, which is fixed here"):
        method.check(tiny_task("adapter", PLAIN, 3, 0))
    method.check(tiny_task("mlp", PLAIN, 3, 0))


@pytest.mark.parametrize(("method", "keeps_head"), [(FedPer(), True), (LGFedAvg(), False)])
def test_the_own_part_stays_and_the_rest_travels(method: Any, keeps_head: bool) -> None:
    """Together they are FedAvg's model from the same start."""

    def own(task: Any) -> Any:
        return {"own": shifted(0.3)(task).only(method.client(task)["own"])}

    done = mlp_round(method, own)
    start = done.message["model"] | done.state["own"]
    plain = mlp_round(FedAvg(), message=lambda task: {"model": start})
    assert set(done.kept["own"]) == (set(HEAD) if keeps_head else set(start) - set(HEAD))
    assert set(done.reply["model"]) | set(done.kept["own"]) == set(start)
    assert_close(done.reply["model"] | done.kept["own"], plain.reply["model"], tolerance=1e-7)
    with pytest.raises(ValueError, match="divides a model into classifier and the rest"):
        method.check(tiny_task("head", PLAIN, clients=2, seed=0))


@pytest.mark.parametrize("adaptive", [True, False])
def test_apfl_trains_both_models_and_the_mixing(adaptive: bool) -> None:
    def own(task: Any) -> Any:
        return {"model": shifted(0.3)(task), "alpha": torch.tensor(0.4)}

    done = mlp_round(APFL(adaptive=adaptive), own)
    task, w, v, alpha = done.task, done.message["model"], done.state["model"], torch.tensor(0.4)
    first = done.parts[0]
    if adaptive:
        mixed = v * alpha + w * (1 - alpha)
        alpha = (alpha - RATE * (v - w).dot(slope(task, mixed, done.x[first], done.y[first]))).clamp(0, 1)
    for at in done.parts:
        x, y = done.x[at], done.y[at]
        of_w, of_mix = slope(task, w, x, y), slope(task, v * alpha + w * (1 - alpha), x, y)
        w, v = w - RATE * of_w, v - of_mix * (RATE * alpha)
    assert_close(done.reply["model"], w, tolerance=1e-6)
    assert_close(done.kept["model"], v, tolerance=1e-6)
    assert float(done.kept["alpha"]) == pytest.approx(float(alpha), abs=1e-6)
    assert (float(alpha) != pytest.approx(0.4)) == adaptive
    server, mix = {"model": shifted(-0.2)(task)}, float(alpha)
    found = APFL().predict(task, server, done.kept, done.x)
    expected = logits(task, done.kept["model"] * mix + server["model"] * (1 - mix), done.x)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_pfedme_steps_to_proximal_points_and_moves_towards_them() -> None:
    method = PFedMe(lam=3.0, inner_steps=4, personal_lr=0.05, outer_lr=0.02)
    done = mlp_round(method)
    theta = w = done.message["model"]
    for at in done.parts:
        for _ in range(4):
            theta = theta - 0.05 * (slope(done.task, theta, done.x[at], done.y[at]) + 3.0 * (theta - w))
        w = w - 0.02 * 3.0 * (w - theta)
    assert_close(done.kept["model"], theta, tolerance=1e-6)
    assert_close(done.reply["model"], w, tolerance=1e-6)


def test_per_fedavg_steps_along_the_gradient_after_a_step() -> None:
    done = mlp_round(PerFedAvg(variant="first_order", alpha=0.2))
    w = own = done.message["model"]
    for at in done.parts:
        own = own - 0.2 * slope(done.task, own, done.x[at], done.y[at])
        even, odd = at[::2], at[1::2]
        inner = w - 0.2 * slope(done.task, w, done.x[even], done.y[even])
        w = w - RATE * slope(done.task, inner, done.x[odd], done.y[odd])
    assert_close(done.reply["model"], w, tolerance=1e-6)
    assert_close(done.kept["model"], own, tolerance=1e-6)


def test_the_hessian_free_gradient_is_that_of_the_loss_after_a_step() -> None:
    """∂/∂w f(w − α∇f(w; D); D′), by PyTorch's second derivatives in double precision."""
    done = mlp_round(PerFedAvg())
    task, alpha = done.task, 0.3
    model = task.model.double()
    batch = Batch(done.x.double(), done.y)
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


def test_fedrod_trains_a_balanced_head_and_a_residual_one() -> None:
    def own(task: Any) -> Any:
        return {"head": shifted(0.2)(task).only(HEAD)}

    gamma = 0.8
    done = mlp_round(FedRoD(gamma=gamma), own)
    task = done.task
    counts = torch.bincount(done.y, minlength=3).float().clamp(min=1e-6)
    model = {name: leaf.clone() for name, leaf in done.message["model"].items()}
    head = {name: leaf.clone() for name, leaf in done.state["head"].items()}
    for at in done.parts:
        for leaf in (*model.values(), *head.values()):
            leaf.requires_grad_()
        z = torch.func.functional_call(
            task.model.encoder, Tree(model).below("encoder").as_dict(), (done.x[at],)
        )
        shared = z @ model[HEAD[0]].T + model[HEAD[1]]
        generic = nn.functional.cross_entropy(shared + gamma * counts.log(), done.y[at])
        residual = z.detach() @ head[HEAD[0]].T + head[HEAD[1]]
        personal = nn.functional.cross_entropy(shared.detach() + residual, done.y[at])
        of_model = torch.autograd.grad(generic, list(model.values()))
        of_head = torch.autograd.grad(personal, list(head.values()))
        model = {n: (p - RATE * g).detach() for (n, p), g in zip(model.items(), of_model, strict=True)}
        head = {n: (p - RATE * g).detach() for (n, p), g in zip(head.items(), of_head, strict=True)}
    assert_close(done.reply["model"], Tree(model), tolerance=1e-6)
    assert_close(done.kept["head"], Tree(head), tolerance=1e-6)
    server = {"model": done.message["model"]}
    both = FedRoD().predict(task, server, done.kept, done.x) - FedRoD().predict(task, server, None, done.x)
    z = task.embed(server["model"], done.x)
    torch.testing.assert_close(both, z @ head[HEAD[0]].T + head[HEAD[1]], atol=1e-5, rtol=0)
