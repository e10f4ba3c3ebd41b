"""FedSDG: penalties, rates, figures and refusals."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bench.contract.models import MODELS
from bench.engine.clients.base import Host
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.federation import Federation
from bench.models import model_spec
from bench.models.base import seeded_model
from bench.suite.loading import load_suite
from bench.suite.planning import plan_cells
from methods.base import Batch, Task, Tree
from methods.core.optimisers import Adam, Optimiser
from methods.core.task import initial_tree
from methods.fedlora import FedLoRA
from methods.fedsdg import GATES, HEAD, FedSDG, personal
from methods.modules.lora import PRIVATE, factors
from tests.kit.contract import (
    PLAIN,
    samples,
    tiny_problem,
    tiny_task,
)

ADAM = Adam(lr=1e-3, clip_norm=1.0)
in_one_process = pytest.mark.parametrize("kind", [LoopHost, StackedHost])


def vit_task(optimiser: Optimiser = PLAIN) -> Task:
    return tiny_task("vit", optimiser, clients=3, seed=0)


def one_batch() -> Batch:
    return Batch(*samples(6, MODELS["vit"].shape, "a batch"))


# The objective


def test_gates_cost_three_at_the_start_of_six_blocks() -> None:
    model = seeded_model(model_spec({"name": "vit_mini"}), (3, 32, 32), 10, seed=0)
    task = Task(model, initial_tree(model), 10, 2, ADAM, 0)
    for penalty in ("unilateral", "bilateral"):
        method = FedSDG(gate_penalty=penalty)
        gates = method.client(task)[GATES]
        assert gates.shape == (6,)
        assert float(method.gate_cost(gates)) == 3.0


def test_gradients_of_the_gates_penalty() -> None:
    """m' = m(1 − m); on the far side of a half the bilateral one pushes up."""
    values = np.array([-2.0, -0.3, 0.4, 3.0])
    m = 1 / (1 + np.exp(-values))
    slope = m * (1 - m)
    expected = {"unilateral": slope, "bilateral": np.where(m < 0.5, slope, -slope)}
    for penalty, gradient in expected.items():
        gates = torch.tensor(values, requires_grad=True)
        (found,) = torch.autograd.grad(FedSDG(gate_penalty=penalty).gate_cost(gates), gates)
        np.testing.assert_allclose(found, gradient, atol=1e-12)


@pytest.mark.parametrize("penalty", ["factors", "product"])
def test_gradients_of_the_private_penalty(penalty: str) -> None:
    """2θ; or 2 BᵀBA for A, and 2 BAAᵀ for B."""
    draw = np.random.default_rng(0)
    numbers = {
        name: draw.normal(size=shape)
        for k in range(2)
        for name, shape in zip(factors(f"layer{k}", PRIVATE), ((2, 5), (4, 2)), strict=True)
    }
    private = Tree({name: torch.tensor(value, requires_grad=True) for name, value in numbers.items()})
    cost = FedSDG(private_penalty=penalty).private_cost(private)
    total = 0.0
    for k in range(2):
        names = factors(f"layer{k}", PRIVATE)
        a, b = (numbers[name] for name in names)
        if penalty == "factors":
            total += (a**2).sum() + (b**2).sum()
            expected = 2 * a, 2 * b
        else:
            total += ((b @ a) ** 2).sum()
            expected = 2 * b.T @ b @ a, 2 * b @ a @ a.T
        found = torch.autograd.grad(cost, [private[name] for name in names], retain_graph=True)
        for slope, gradient in zip(found, expected, strict=True):
            np.testing.assert_allclose(slope, gradient, atol=1e-10)
    assert cost.item() == pytest.approx(total)


def test_the_product_penalty_is_nothing_at_the_start_and_the_branch_too() -> None:
    task, method = vit_task(), FedSDG(private_penalty="product")
    client = method.client(task)
    assert float(method.private_cost(client["private"])) == 0
    server = method.server(task)
    x = one_batch().x
    assert torch.equal(method.predict(task, server, client, x), method.predict(task, server, None, x))
    wider = FedSDG(private_init_std=0.01).client(task)["private"]
    spread = torch.cat([leaf.flatten() for name, leaf in wider.items() if ".lora_B." in name]).std()
    assert float(spread) == pytest.approx(0.01, rel=0.3)


@pytest.mark.parametrize(("granularity", "count"), [("block", 2), ("layer", 4), ("global", 1)])
def test_granularity(granularity: str, count: int) -> None:
    task, method = vit_task(), FedSDG(granularity=granularity)
    client = method.client(task)
    assert client[GATES].tolist() == [0.0] * count
    places = method.gate_of(task)
    private = client["private"].map(torch.ones_like)
    own = personal(task.initial, private, torch.arange(float(count)), places)
    passed = [float(leaf[0, 0]) for name, leaf in own.items() if name.endswith(".lora_B.private.weight")]
    expected = {"block": [0, 0, 1, 1], "layer": [0, 1, 2, 3], "global": [0, 0, 0, 0]}[granularity]
    assert passed == pytest.approx([1 / (1 + np.exp(-at)) for at in expected])


# What travels


@in_one_process
def test_private_factors_and_gates_never_travel(kind: type[Host]) -> None:
    problem = tiny_problem(FedSDG(private_init_std=0.1), optimiser=ADAM)
    task, method, host = problem.task, problem.method, kind(problem)
    server = method.server(task)
    down = [(client, method.down(task, server, client)) for client in problem.train]
    replies = host.run(0, 1, down)
    expected = set(task.initial)
    assert not any("private" in name or "gate" in name for name in expected)
    for content in [*(message for _, message in down), *(reply.content for reply in replies)]:
        assert set(content) == {"model"}
        assert set(content["model"]) == expected
    assert all(set(host.state(client)) == {"private", GATES} for client in problem.train)


@in_one_process
def test_a_private_head_stays_and_is_trained(kind: type[Host]) -> None:
    problem = tiny_problem(FedSDG(private_head=True), optimiser=ADAM)
    task, method, host = problem.task, problem.method, kind(problem)
    federation = Federation(problem, host)
    federation.advance()
    federation.advance()
    head = {"classifier.weight", "classifier.bias"}
    assert set(federation.server["model"]) == set(task.initial) - head
    x = one_batch().x
    states = [host.state(client) for client in problem.train]
    for state in states:
        assert set(state[HEAD]) == head
        assert (state[HEAD]["classifier.bias"] - task.initial["classifier.bias"]).abs().max() > 1e-4
    scores = [method.predict(task, federation.server, state, x) for state in states]
    assert (scores[0] - scores[1]).abs().max() > 1e-4
    own = method.parameters(task, federation.server, None)
    assert torch.equal(own["classifier.weight"], task.initial["classifier.weight"])


# Figures


@in_one_process
def test_a_record_has_the_gates_of_the_rounds_clients(kind: type[Host]) -> None:
    problem = tiny_problem(FedSDG(gate_lr=0.2), optimiser=ADAM)
    host = kind(problem)
    federation = Federation(problem, host, participation=0.7)
    metrics = federation.advance()["metrics"]
    took_part = federation.participants(1)
    gates = np.array([torch.sigmoid(host.state(client)[GATES]).numpy() for client in took_part])
    assert gates.shape == (2, 2)
    assert [metrics["gate/block_0"], metrics["gate/block_1"]] == pytest.approx(gates.mean(axis=0).tolist())
    assert metrics["gate_mean"] == pytest.approx(gates.mean())
    assert metrics["gate_min"] == pytest.approx(gates.min(axis=1).mean())
    assert metrics["gate_max"] == pytest.approx(gates.max(axis=1).mean())
    assert metrics["gate_low_share"] == pytest.approx((gates < 0.1).mean())
    assert metrics["gate_high_share"] == pytest.approx((gates > 0.9).mean())
    assert abs(gates - 0.5).min() > 0.01
    shared = np.sqrt(sum(float((leaf**2).sum()) for leaf in federation.server["model"].values()))
    private = [
        np.sqrt(sum(float((leaf**2).sum()) for leaf in host.state(client)["private"].values()))
        for client in took_part
    ]
    assert metrics["private_to_shared"] == pytest.approx(np.mean(private) / shared, rel=1e-5)
    assert {"alpha_mean", "weight_entropy", "fallbacks", f"weight/{took_part[0]}"} <= set(metrics)


# Refusals


@pytest.mark.parametrize("kind", [FedSDG, FedLoRA])
def test_a_model_without_adapters_is_refused_in_one_sentence(kind: type[FedSDG] | type[FedLoRA]) -> None:
    with pytest.raises(
        ValueError,
        match=r"^needs a model with adapters: choose vit_mini, vit_lora, or ",
    ):
        kind().check(tiny_task("mlp", PLAIN, clients=2, seed=0))


def test_weight_decay_is_refused() -> None:
    with pytest.raises(ValueError, match="that weight decay would distort"):
        FedSDG().check(vit_task(Adam(lr=1e-3, weight_decay=1e-4)))


# The suites


@pytest.mark.parametrize("name", ["quickstart_fedsdg", "fedsdg"])
def test_suites_measure_both_accuracies(name: str) -> None:
    suite = load_suite(name)
    assert suite.evaluation.personal
    cells = plan_cells(suite)
    methods = {cell.method for cell in cells}
    assert {"local", "fedlora", "fedsdg"} <= methods
    for cell in cells:
        optimiser = cell.config.training.optimiser
        assert (optimiser["name"], optimiser["lr"], optimiser["clip_norm"]) == ("adam", 1e-3, 1.0)
        assert cell.config.partition.name == "dirichlet"
        assert "fonts" not in cell.config.dataset.options.get("domains", [])
