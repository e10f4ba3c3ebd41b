"""The methods that average LoRA branches in their own ways, against closed forms and limit cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch.func import functional_call

from bench.engine.clients.loop import LoopHost
from bench.engine.federation import Federation
from bench.engine.problem import Problem
from methods.base import FedAlgorithm, Message, Reply, Task, Tree
from methods.core.optimisers import SGD
from methods.fedalt import FedALT
from methods.feddpa import FedDPA
from methods.fedex_lora import FedExLoRA
from methods.fedlora import FedLoRA
from methods.fedsa_lora import FedSALoRA
from methods.fedsvd import FedSVD, orthogonalised
from methods.ffa_lora import FFALoRA
from methods.flexlora import FlexLoRA
from methods.flora import FLoRA
from methods.lora_fair import LoRAFAIR
from methods.modules.lora import PRIVATE, SHARED, factors, factors_of, lora_layers
from methods.pf2lora import PF2LoRA
from methods.rolora import RoLoRA
from methods.shared.products import decomposed
from tests.kit.contract import tiny_problem, tiny_task

FAST = SGD(lr=0.5)


def problem_of(method: FedAlgorithm) -> Problem:
    return tiny_problem(method, "vit", optimiser=FAST)


def exchanged(problem: Problem, rounds: int = 1) -> tuple[Federation, list[Message], Sequence[Reply]]:
    """The federation after some rounds, and all messages and replies of the next, which is not aggregated."""
    host = LoopHost(problem)
    federation = Federation(problem, host)
    for _ in range(rounds):
        federation.advance()
    down = [(k, problem.method.down(problem.task, federation.server, k)) for k in problem.train]
    replies = host.run(0, rounds + 1, down)
    return federation, [message for _, message in down], replies


def effective(task: Task, parameters: Tree) -> dict[str, np.ndarray]:
    """W + s·B A of every layer, in float64."""
    weights = {}
    for name, layer in lora_layers(task.model).items():
        first, second = factors(name, SHARED)
        frozen = f"{name}.base_layer.weight"
        w = parameters.get(frozen, task.model.get_parameter(frozen)).detach().double()
        branch = parameters[second].double() @ parameters[first].double()
        weights[name] = (w + layer.scaling[SHARED] * branch).numpy()
    return weights


def mean_effective(task: Task, models: list[Tree], weights: list[float]) -> dict[str, np.ndarray]:
    each = [effective(task, model) for model in models]
    return {name: np.average([one[name] for one in each], axis=0, weights=weights) for name in each[0]}


def shares(replies: Sequence[Reply]) -> list[float]:
    total = sum(reply.samples for reply in replies)
    return [reply.samples / total for reply in replies]


def largest_gap(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> float:
    return max(float(np.abs(one[name] - other[name]).max()) for name in one)


def test_ffa_lora_averages_products_exactly_and_never_sends_a_first_factor() -> None:
    problem = problem_of(FFALoRA())
    task = problem.task
    federation, down, replies = exchanged(problem)
    frozen = task.initial.only(factors_of(task.model, SHARED)[0])
    for content in [*down, *(reply.content for reply in replies)]:
        assert not any(".lora_A." in name for name in content["model"])
    server = problem.method.aggregate(task, federation.server, replies)
    after = problem.method.parameters(task, server, None)
    expected = mean_effective(task, [reply.content["model"] | frozen for reply in replies], shares(replies))
    assert largest_gap(effective(task, after), expected) < 1e-6
    assert largest_gap(effective(task, after), effective(task, task.initial)) > 1e-3


def test_fedlora_does_not_average_products() -> None:
    """So that the other tests of exactness here can fail."""
    problem = problem_of(FedLoRA())
    federation, _, replies = exchanged(problem)
    server = problem.method.aggregate(problem.task, federation.server, replies)
    expected = mean_effective(problem.task, [r.content["model"] for r in replies], shares(replies))
    assert largest_gap(effective(problem.task, server["model"]), expected) > 1e-4


def test_fedex_lora_makes_the_mean_of_the_effective_weights() -> None:
    problem = problem_of(FedExLoRA())
    task, method = problem.task, problem.method
    federation, down, replies = exchanged(problem)
    own = [
        method.parameters(task, {"model": reply.content["model"], "residual": message["residual"]}, None)
        for message, reply in zip(down, replies, strict=True)
    ]
    assert max(float(leaf.abs().max()) for leaf in down[0]["residual"].values()) > 1e-5
    server = method.aggregate(task, federation.server, replies)
    after = effective(task, method.parameters(task, server, None))
    assert largest_gap(after, mean_effective(task, own, shares(replies))) < 1e-6


def test_flexlora_reproduces_the_mean_where_the_rank_suffices() -> None:
    """Two clients of rank 1 fit into the model's rank of 2; three of rank 2 do not."""
    for ranks, clients, exact in (((1,), 2, True), ((), 3, False)):
        problem = problem_of(FlexLoRA(ranks=ranks))
        task = problem.task
        federation, _, replies = exchanged(problem)
        replies = replies[:clients]
        server = problem.method.aggregate(task, federation.server, replies)
        expected = mean_effective(task, [reply.content["model"] for reply in replies], shares(replies))
        gap = largest_gap(effective(task, server["model"]), expected)
        assert (gap < 1e-6) == exact


def test_flexlora_keeps_every_client_to_its_rank() -> None:
    problem = problem_of(FlexLoRA(ranks=(1, 2)))
    _, down, replies = exchanged(problem)
    firsts, seconds = factors_of(problem.task.model, SHARED)
    for rank, content in zip((1, 2, 1) * 2, [*down, *(r.content for r in replies)], strict=True):
        for first, second in zip(firsts, seconds, strict=True):
            a, b = content["model"][first], content["model"][second]
            assert [bool(row.any()) for row in a] == [True, rank == 2]
            assert [bool(column.any()) for column in b.mT] == [True, rank == 2]
    with pytest.raises(ValueError, match="has ranks up to 3, but the model's branches have 2"):
        FlexLoRA(ranks=(3,)).check(problem.task)


@pytest.mark.parametrize(("shape", "rank"), [((5, 4), 2), ((4, 5), 4), ((3, 6), 5)])
def test_a_decomposition_is_the_nearest_of_its_rank(shape: tuple[int, int], rank: int) -> None:
    """Its error has the squared norm of the singular values that are left out (Eckart and Young)."""
    matrix = np.random.default_rng(0).normal(size=shape)
    b, a = decomposed(torch.from_numpy(matrix), rank)
    assert (b.shape, a.shape) == ((shape[0], rank), (rank, shape[1]))
    left_out = np.linalg.svd(matrix, compute_uv=False)[rank:]
    assert ((matrix - (b @ a).numpy()) ** 2).sum() == pytest.approx((left_out**2).sum(), abs=1e-12)


def test_fedsa_lora_sends_first_factors_alone() -> None:
    problem = problem_of(FedSALoRA())
    federation, down, replies = exchanged(problem)
    firsts = factors_of(problem.task.model, SHARED)[0]
    for content in [*down, *(reply.content for reply in replies)]:
        assert list(content["model"]) == firsts
    states = [federation.hosts.state(client) for client in problem.train]  # type: ignore[attr-defined]
    assert not torch.equal(states[0]["own"]["classifier.bias"], states[1]["own"]["classifier.bias"])


def test_fedalt_sends_everybody_the_mean_of_the_others() -> None:
    problem = problem_of(FedALT())
    federation, down, _ = exchanged(problem)
    heard = federation.server["heard"]
    assert list(heard) == ["0", "1", "2"]
    for client, message in enumerate(down):
        others = [tree for number, tree in heard.items() if number != str(client)]
        for name, leaf in message["rest"].items():
            own_name = name.replace(".shared.", ".private.")
            expected = sum(tree[own_name].double() for tree in others) / 2
            torch.testing.assert_close(leaf.double(), expected, atol=1e-7, rtol=1e-6)
    first = problem.method.down(problem.task, problem.method.server(problem.task), 0)
    assert all(torch.equal(leaf, problem.task.initial[name]) for name, leaf in first["rest"].items())


def test_a_router_weights_the_branches_of_every_token() -> None:
    task = tiny_task("vit", FAST, clients=2, seed=0)
    name, layer = next(iter(lora_layers(task.model).items()))
    draw = torch.Generator().manual_seed(0)
    shapes = {"A": (2, 8), "B": (8, 2)}
    values: dict[str, Any] = {
        f"lora_{part}.{adapter}.weight": torch.randn(shapes[part], generator=draw)
        for adapter in (SHARED, PRIVATE)
        for part in "AB"
    }
    router, x = torch.randn(2, 8, generator=draw), torch.randn(3, 4, 8, generator=draw)
    out = functional_call(layer, {**values, "router": router}, (x,)).detach().numpy()
    v = {key: value.numpy().astype(np.float64) for key, value in values.items()}
    logits = x.numpy().astype(np.float64) @ router.numpy().T
    gate = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    expected = layer.base_layer(x).detach().numpy().astype(np.float64)
    for at, adapter in enumerate((SHARED, PRIVATE)):
        branch = x.numpy() @ v[f"lora_A.{adapter}.weight"].T @ v[f"lora_B.{adapter}.weight"].T
        expected = expected + layer.scaling[SHARED] * gate[..., at : at + 1] * branch
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
    assert name.endswith("attn.proj")


@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_rolora_trains_and_sends_one_factor_in_turn_and_averages_products_exactly(rounds: int) -> None:
    problem = problem_of(RoLoRA())
    task, method = problem.task, problem.method
    federation, down, replies = exchanged(problem, rounds)
    before = method.parameters(task, federation.server, None)
    trained, frozen = (".lora_B.", ".lora_A.") if rounds % 2 == 0 else (".lora_A.", ".lora_B.")
    for content in [*down, *(reply.content for reply in replies)]:
        assert any(trained in name for name in content["model"])
        assert not any(frozen in name for name in content["model"])
    server = method.aggregate(task, federation.server, replies)
    after = method.parameters(task, server, None)
    assert all(torch.equal(after[name], before[name]) for name in before if frozen in name)
    assert not any(torch.equal(after[name], before[name]) for name in before if trained in name)
    own = [reply.content["model"] | message["frozen"] for message, reply in zip(down, replies, strict=True)]
    assert largest_gap(effective(task, after), mean_effective(task, own, shares(replies))) < 1e-6


def test_fedsvd_makes_first_factors_orthonormal_and_leaves_the_model_as_it_is() -> None:
    problem = problem_of(FedSVD())
    task, method = problem.task, problem.method
    federation, down, replies = exchanged(problem)
    for reply in replies:
        assert not any(".lora_A." in name for name in reply.content["model"])
    server = method.aggregate(task, federation.server, replies)
    after = method.parameters(task, server, None)
    own = [reply.content["model"] | message["frozen"] for message, reply in zip(down, replies, strict=True)]
    assert largest_gap(effective(task, after), mean_effective(task, own, shares(replies))) < 1e-6
    for first, second in zip(*factors_of(task.model, SHARED), strict=True):
        a, b = after[first], after[second]
        torch.testing.assert_close(a @ a.T, torch.eye(len(a)), atol=1e-6, rtol=0)
        columns = b.T @ b
        torch.testing.assert_close(columns, columns.diag().diag(), atol=1e-6, rtol=0)
        assert columns[0, 0] > columns[1, 1]
        assert not torch.equal(a, federation.server["frozen"][first])


def test_an_orthogonal_first_factor_keeps_to_the_old_rows_where_nothing_has_been_learnt() -> None:
    old = torch.randn(3, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    b, a = orthogonalised(torch.zeros(5, 3, dtype=torch.float64), old)
    assert not b.any()
    torch.testing.assert_close(a @ a.T, torch.eye(3, dtype=torch.float64))
    torch.testing.assert_close(old @ a.T @ a, old)


@pytest.mark.parametrize("ranks", [(), (1, 2)])
def test_flora_merges_the_mean_of_the_products_and_begins_again(ranks: tuple[int, ...]) -> None:
    problem = problem_of(FLoRA(ranks=ranks))
    task, method = problem.task, problem.method
    federation, down, replies = exchanged(problem)
    own = [
        method.parameters(task, {"model": reply.content["model"], "residual": message["residual"]}, None)
        for message, reply in zip(down, replies, strict=True)
    ]
    server = method.aggregate(task, federation.server, replies)
    after = effective(task, method.parameters(task, server, None))
    assert largest_gap(after, mean_effective(task, own, shares(replies))) < 1e-6
    assert largest_gap(after, effective(task, method.parameters(task, federation.server, None))) > 1e-3
    for first, second in zip(*factors_of(task.model, SHARED), strict=True):
        assert not server["model"][second].any()
        drawn = [state["model"][first] for state in (server, federation.server, method.server(task))]
        assert not any(torch.equal(drawn[0], other) for other in drawn[1:])
        bound = drawn[0].shape[1] ** -0.5
        assert bound / 2 < drawn[0].abs().max() <= bound
        if ranks:
            assert [bool(row.any()) for row in replies[0].content["model"][first]] == [True, False]


def matrices(clients: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean of some products, and the means of their factors."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(clients, 2, 6)), rng.normal(size=(clients, 5, 2))
    return np.einsum("kor,kri->oi", b, a) / clients, b.mean(axis=0), a.mean(axis=0)


@pytest.mark.parametrize("lam", [0.0, 0.1, 0.5])
def test_the_correction_of_lora_fair_minimises_what_the_paper_prints(lam: float) -> None:
    """No start of a general minimiser finds less."""
    mean, b, a = matrices()

    def printed(delta: np.ndarray) -> float:
        product = (b + delta.reshape(b.shape)) @ a
        cosine = (mean * product).sum() / np.linalg.norm(mean) / np.linalg.norm(product)
        return float(1 - cosine + lam * np.linalg.norm(delta))

    method = LoRAFAIR(lam=lam, server_steps=500)
    ours = method.along_the_mean(*map(torch.from_numpy, (mean, b, a))).numpy()
    starts = np.random.default_rng(0).normal(size=(4, b.size))
    assert printed(ours) <= min(minimize(printed, start).fun for start in starts) + 1e-6
    assert ours.any() == (lam < 0.5)  # at which it is not worth its price


def test_lora_fair_by_squares_is_a_projection_without_a_penalty_and_the_average_with_a_large_one() -> None:
    mean, b, a = matrices()
    args = tuple(map(torch.from_numpy, (mean, b, a)))
    left_over = mean - (b + LoRAFAIR(lam=0.0).near_the_mean(*args).numpy()) @ a
    assert np.abs(left_over @ a.T).max() < 1e-12 < np.abs(left_over).max()
    assert LoRAFAIR(lam=1e9).near_the_mean(*args).abs().max() < 1e-8


def test_pf2lora_keeps_a_smaller_branch_to_itself() -> None:
    problem = problem_of(PF2LoRA())
    task = problem.task
    federation, down, replies = exchanged(problem)
    for content in [*down, *(reply.content for reply in replies)]:
        assert list(content) == ["model"]
        assert not any(f".{PRIVATE}." in name for name in content["model"])
    for client in problem.train:
        private = federation.hosts.state(client)["private"]  # type: ignore[attr-defined]
        for first, second in zip(*factors_of(task.model, PRIVATE), strict=True):
            assert [bool(row.any()) for row in private[first]] == [True, False]
            assert [bool(column.any()) for column in private[second].T] == [True, False]
    with pytest.raises(ValueError, match="has private rank 3, but the model's branches have 2"):
        PF2LoRA(private_rank=3).check(task)


OF_LORA = [
    FedALT, FedDPA, FedExLoRA, FedSALoRA, FedSVD, FFALoRA, FlexLoRA, FLoRA, LoRAFAIR, PF2LoRA, RoLoRA,
]  # fmt: skip


@pytest.mark.parametrize("kind", OF_LORA)
def test_a_model_without_adapters_is_refused(kind: type[FedAlgorithm]) -> None:
    with pytest.raises(ValueError, match="needs a model with adapters"):
        kind().check(tiny_task("mlp", FAST, clients=2, seed=0))
