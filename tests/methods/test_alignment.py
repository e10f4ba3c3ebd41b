"""Aggregation by agreement: the worked example, its edges, its options, and the memory it takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from methods.base import Reply, State, Task, Tree
from methods.core.optimisers import SGD
from methods.fedavg import FedAvg
from methods.modules.split_model import SplitModel
from methods.shared.alignment import Alignment, capped, observed
from tests.kit.contract import tiny_task

Array: TypeAlias = np.ndarray[Any, Any]
Point: TypeAlias = Sequence[float] | Array
LEAF = "classifier.weight"
EXAMPLE = ([1.0, 2.0], [[1.5, 2.3], [1.6, 2.4], [0.5, 1.8]])


def tree(values: Point, dtype: torch.dtype = torch.float64) -> Tree:
    return Tree({LEAF: torch.tensor([list(values)], dtype=dtype)})


def task_of(width: int) -> Task:
    classifier = nn.Linear(width, 1, bias=False)
    model = SplitModel(nn.Identity(), nn.Identity(), classifier, feature_size=width, embedding_size=width)
    return Task(model, tree([0.0] * width), 1, 3, SGD(lr=0.1), 0)


def replies_of(clients: Sequence[Point] | Array, samples: Sequence[int] | None = None) -> list[Reply]:
    sizes = samples or [10] * len(clients)
    return [
        Reply(k, size, {"model": tree(y)}) for k, (y, size) in enumerate(zip(clients, sizes, strict=True))
    ]


def aggregated(
    theta: Point,
    clients: Sequence[Point] | Array,
    samples: Sequence[int] | None = None,
    **options: Any,
) -> State:
    alignment = Alignment(**options)
    server = {"model": tree(theta), "alignment": alignment.start()}
    return alignment.align(task_of(len(theta)), server, replies_of(clients, samples))


def model_of(state: State) -> list[float]:
    model: Tree = state["model"]
    return list(model[LEAF].flatten().tolist())


def weights_of(state: State) -> list[float]:
    return list(state["alignment"]["weights"].tolist())


# The worked example


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_worked_example(dtype: torch.dtype) -> None:
    task = task_of(2)
    server = {"model": tree(EXAMPLE[0], dtype), "alignment": Alignment().start()}
    replies = [Reply(k, 1, {"model": tree(y, dtype)}) for k, y in enumerate(EXAMPLE[1])]
    state = Alignment().align(task, server, replies)
    alpha = state["alignment"]["alpha"].tolist()
    assert alpha == pytest.approx([0.9881164690, 0.9943091539, 0.0], abs=1e-6)
    assert weights_of(state) == pytest.approx([0.498438, 0.501562, 0.0], abs=1e-6)
    assert model_of(state) == pytest.approx([1.550156, 2.350156], abs=1e-6)
    plain = FedAvg().aggregate(task, {"model": tree(EXAMPLE[0], dtype)}, replies)
    assert model_of(plain) == pytest.approx([1.2, 2.166667], abs=1e-6)


def test_the_third_cosine_of_the_worked_example() -> None:
    """Only the softmax keeps its sign."""
    alpha = aggregated(*EXAMPLE, weighting="softmax")["alignment"]["alpha"].tolist()
    assert alpha[2] == pytest.approx(-0.9510340687, abs=1e-9)


# Edges


def test_no_client_leaves_everything_as_it_is() -> None:
    alignment = Alignment()
    server = {"model": tree([1, 2]), "alignment": alignment.start()}
    assert alignment.align(task_of(2), server, []) == server


@pytest.mark.parametrize("reference", ["mean", "leave_one_out"])
def test_one_client_gives_its_model(reference: str) -> None:
    state = aggregated([1, 2], [[3, -1]], reference=reference)
    assert model_of(state) == [3, -1]
    assert int(state["alignment"]["fallbacks"]) == 0


@pytest.mark.parametrize("reference", ["mean", "leave_one_out"])
def test_identical_clients_count_the_same(reference: str) -> None:
    state = aggregated([1, 2], [[1.5, 2.5]] * 4, reference=reference)
    assert weights_of(state) == pytest.approx([0.25] * 4)
    assert model_of(state) == pytest.approx([1.5, 2.5])


def test_orthogonal_clients_count_the_same() -> None:
    state = aggregated([0, 0], [[1, 0], [0, 1]])
    assert state["alignment"]["alpha"].tolist() == pytest.approx([math.sqrt(0.5)] * 2)
    assert model_of(state) == pytest.approx([0.5, 0.5])


def test_orthogonal_clients_say_nothing_about_each_other() -> None:
    state = aggregated([0, 0], [[1, 0], [0, 1]], reference="leave_one_out")
    assert state["alignment"]["alpha"].tolist() == [0, 0]
    assert model_of(state) == pytest.approx([0.5, 0.5])
    assert int(state["alignment"]["fallbacks"]) == 1


@pytest.mark.parametrize("seed", range(5))
def test_opposed_clients_leave_the_model_and_are_counted(seed: int) -> None:
    """Even where the updates cancel out but for rounding."""
    way = np.random.default_rng(seed).normal(size=6)
    state = aggregated(way * 0, [way / 3, -way / 3])
    assert weights_of(state) == [0.5, 0.5]
    assert model_of(state) == pytest.approx([0] * 6, abs=1e-12)
    assert int(state["alignment"]["fallbacks"]) == 1


def test_clients_that_did_not_move_leave_the_model() -> None:
    state = aggregated([1, 2], [[1, 2], [1, 2]])
    assert model_of(state) == [1, 2]
    assert weights_of(state) == [0.5, 0.5]


def test_fallbacks_are_counted_over_the_rounds() -> None:
    alignment, task = Alignment(), task_of(1)
    state: State = {"model": tree([0]), "alignment": alignment.start()}
    for ends in ([1, -1], [1, 2], [5, -5]):
        start = float(state["model"][LEAF])
        state = alignment.align(task, state, replies_of([[start + end] for end in ends]))
    assert observed(state["alignment"])["fallbacks"] == 2


@pytest.mark.parametrize("reference", ["mean", "leave_one_out"])
@pytest.mark.parametrize("weighting", ["relu", "softmax"])
@pytest.mark.parametrize("times_samples", [False, True])
@pytest.mark.parametrize("max_weight", [None, 0.3])
def test_weights_sum_to_one_and_the_model_is_never_wiped(
    reference: str, weighting: str, times_samples: bool, max_weight: float | None
) -> None:
    draw = np.random.default_rng(0)
    theta = draw.normal(size=8) + 10
    for scale in (1e-6, 1.0, 100.0):
        clients = theta + scale * draw.normal(size=(5, 8))
        state = aggregated(
            theta,
            clients,
            samples=[3, 50, 7, 20, 1],
            reference=reference,
            weighting=weighting,
            times_samples=times_samples,
            max_weight=max_weight,
        )
        weights = np.array(weights_of(state))
        assert weights.sum() == pytest.approx(1, abs=1e-12)
        assert (weights >= 0).all()
        assert max_weight is None or weights.max() <= max_weight + 1e-9
        np.testing.assert_allclose(model_of(state), weights @ clients, rtol=1e-9, atol=1e-9)


# Options


@pytest.mark.parametrize(
    ("weights", "most", "expected"),
    [
        ([0.7, 0.2, 0.1], 0.5, [0.5, 1 / 3, 1 / 6]),
        ([0.8, 0.15, 0.05], 0.4, [0.4, 0.4, 0.2]),
        ([1.0, 0.0, 0.0], 0.5, [0.5, 0.25, 0.25]),
        ([0.4, 0.3, 0.3], 0.5, [0.4, 0.3, 0.3]),
    ],
)
def test_a_cap_gives_what_it_cuts_off_to_the_others(
    weights: list[float], most: float, expected: list[float]
) -> None:
    assert capped(torch.tensor(weights, dtype=torch.float64), most).tolist() == pytest.approx(expected)


def test_cosines_can_leave_out_the_head() -> None:
    """Two clients agree in their adapters, and are opposed in their heads, which are far larger."""
    task = tiny_task("vit", SGD(lr=0.1), 2, 0)
    theta = task.initial
    one, other = (
        theta.map(lambda leaf: leaf + 0.01)
        | theta.only(["classifier.weight"]).map(lambda leaf, by=by: leaf + by)
        for by in (5.0, -5.0)
    )
    replies = [Reply(k, 1, {"model": model}) for k, model in enumerate((one, other))]
    alpha = {}
    for which in ("all", "lora"):
        alignment = Alignment(cosine_on=which)
        server = {"model": theta, "alignment": alignment.start()}
        alpha[which] = alignment.align(task, server, replies)["alignment"]["alpha"].tolist()
    assert alpha["lora"] == pytest.approx([1, 1], abs=1e-5)
    assert max(alpha["all"]) < 0.5


def test_leaving_out_the_head_needs_adapters() -> None:
    alignment = Alignment(cosine_on="lora")
    with pytest.raises(ValueError, match="needs a model with adapters"):
        alignment.check_alignment(tiny_task("mlp", SGD(lr=0.1), 2, 0))
    alignment.check_alignment(tiny_task("vit", SGD(lr=0.1), 2, 0))


def test_zeros_are_counted() -> None:
    aligned = aggregated(*EXAMPLE)["alignment"]
    figures = observed(aligned)
    assert (figures["alpha_zeros"], figures["weight_zeros"]) == (1, 1)
    tiny = observed(aligned | {"weights": torch.tensor([1 - 5e-7, 5e-7, 0.0], dtype=torch.float64)})
    assert tiny["weight_zeros"] == 2


def test_epsilon_says_when_cosines_count_as_nothing() -> None:
    alpha = torch.tensor([0.2, 0.1], dtype=torch.float64)
    weights, fell_back = Alignment(epsilon=0.5).weights(alpha, [1, 1])
    assert fell_back
    assert weights.tolist() == [0.5, 0.5]
    assert not Alignment(epsilon=0.25).weights(alpha, [1, 1])[1]
    assert "epsilon" not in Alignment().model_dump()


# Memory


def peak_bytes(clients: int) -> int:
    """The most that the aggregation holds at once beyond what it was given."""
    width = 50_000
    draw = torch.Generator().manual_seed(0)
    models = [Tree({LEAF: torch.randn(1, width, generator=draw)}) for _ in range(clients)]
    task = task_of(width)
    server: dict[str, Any] = {"model": models[0].zeros(), "alignment": Alignment().start()}
    replies = [Reply(k, 1, {"model": model}) for k, model in enumerate(models)]
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        state = Alignment().align(task, server, replies)
    assert isinstance(state["model"][LEAF], Tensor)
    events = profile.profiler.kineto_results.events()
    changes = [(each.start_ns(), each.nbytes()) for each in events if each.name() == "[memory]"]
    held = np.cumsum([size for _, size in sorted(changes)])
    return int(held.max())


def test_memory_does_not_grow_with_the_number_of_clients() -> None:
    model = 4 * 50_000
    few, many = peak_bytes(3), peak_bytes(30)
    assert model <= few
    assert many <= few + model / 10


def test_a_fallback_is_uniform_even_where_samples_count() -> None:
    weights, fell_back = Alignment(times_samples=True).weights(torch.zeros(3, dtype=torch.float64), [1, 2, 7])
    assert fell_back
    assert weights.tolist() == pytest.approx([1 / 3] * 3)
