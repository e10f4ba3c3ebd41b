"""The optimisers against `torch.optim`, and steps and samples that are only padding."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from methods.base import Batch, Tree
from methods.core.losses import cross_entropy
from methods.core.optimisers import SGD, Adam, AdamW, Group, Optimiser
from methods.core.training import ONE_CLIENT, STACKED, STACKED_ON_GPU, Mode, train
from methods.shared.losses import class_sums
from tests.kit.tiny import close, draw, equal

GROUPS = (Group(match="classifier", lr=0.02), Group(match="bias", lr=0.3))
CASES: dict[str, tuple[Optimiser, Callable[[Any], torch.optim.Optimizer]]] = {
    "sgd": (SGD(lr=0.1), lambda groups: torch.optim.SGD(groups, lr=0.1)),
    "sgd, momentum and decay": (
        SGD(lr=0.1, momentum=0.9, weight_decay=0.05),
        lambda groups: torch.optim.SGD(groups, lr=0.1, momentum=0.9, weight_decay=0.05),
    ),
    "adam": (Adam(lr=0.05), lambda groups: torch.optim.Adam(groups, lr=0.05)),
    "adam, decay and other betas": (
        Adam(lr=0.05, betas=(0.8, 0.95), weight_decay=0.1, epsilon=1e-4),
        lambda groups: torch.optim.Adam(groups, lr=0.05, betas=(0.8, 0.95), weight_decay=0.1, eps=1e-4),
    ),
    "adamw": (AdamW(lr=0.05), lambda groups: torch.optim.AdamW(groups, lr=0.05)),
    "adamw, decay and other betas": (
        AdamW(lr=0.05, betas=(0.8, 0.95), weight_decay=0.3, epsilon=1e-4),
        lambda groups: torch.optim.AdamW(groups, lr=0.05, betas=(0.8, 0.95), weight_decay=0.3, eps=1e-4),
    ),
    "adamw, clipped, in groups": (
        AdamW(lr=0.05, weight_decay=0.5, clip_norm=0.3, groups=GROUPS),
        lambda groups: torch.optim.AdamW(groups, lr=0.05, weight_decay=0.5),
    ),
    "sgd, clipped": (
        SGD(lr=0.1, momentum=0.5, clip_norm=0.3),
        lambda groups: torch.optim.SGD(groups, lr=0.1, momentum=0.5),
    ),
    "adam, clipped, in groups": (
        Adam(lr=0.05, clip_norm=0.3, groups=GROUPS),
        lambda groups: torch.optim.Adam(groups, lr=0.05),
    ),
    "sgd, in groups": (
        SGD(lr=0.1, momentum=0.9, groups=GROUPS),
        lambda groups: torch.optim.SGD(groups, lr=0.1, momentum=0.9),
    ),
}


def start() -> Tree:
    source = draw(0)
    shapes = {
        "encoder.weight": (4, 3),
        "encoder.bias": (4,),
        "classifier.weight": (2, 4),
        "classifier.bias": (2,),
    }
    return Tree({name: torch.randn(*shape, generator=source) for name, shape in shapes.items()})


def loss(params: Tree, batch: Batch) -> Tensor:
    hidden = torch.tanh(F.linear(batch.x, params["encoder.weight"], params["encoder.bias"]))
    return cross_entropy(F.linear(hidden, params["classifier.weight"], params["classifier.bias"]), batch)


def batches(live: Iterable[bool]) -> list[Batch]:
    source = draw(1)
    return [
        Batch(torch.randn(6, 3, generator=source), torch.arange(6) % 2, live=torch.tensor(real))
        for real in live
    ]


def by_torch(optimiser: Optimiser, make: Callable[[Any], torch.optim.Optimizer]) -> Tree:
    leaves = {name: leaf.clone().requires_grad_() for name, leaf in start().items()}
    rates = optimiser.rates(list(leaves))
    theirs = make([{"params": [leaf], "lr": lr} for leaf, lr in zip(leaves.values(), rates, strict=True)])
    for batch in batches([True] * 5):
        theirs.zero_grad()
        loss(Tree(leaves), batch).backward()
        if optimiser.clip_norm is not None:
            norm = torch.nn.utils.clip_grad_norm_(leaves.values(), optimiser.clip_norm)
            assert norm > optimiser.clip_norm, "nothing was clipped"
        theirs.step()
    return Tree(leaves).detach()


@pytest.mark.parametrize(
    "mode", [ONE_CLIENT, STACKED, STACKED_ON_GPU], ids=["one client", "stacked", "vectors"]
)
@pytest.mark.parametrize("case", CASES)
def test_steps_are_those_of_torch(case: str, mode: Mode) -> None:
    optimiser, make = CASES[case]
    plain = [batch._replace(live=None) for batch in batches([True] * 5)]
    ours = train(start(), loss, plain, optimiser, mode=mode)
    assert close(ours, by_torch(optimiser, make))
    assert not close(ours, start(), tolerance=1e-3)


def test_the_first_group_that_matches_sets_the_rate() -> None:
    rates = SGD(lr=0.1, groups=GROUPS).rates(list(start()))
    assert rates == [0.1, 0.3, 0.02, 0.02]


@pytest.mark.parametrize("case", CASES)
def test_a_step_that_is_not_live_changes_nothing(case: str) -> None:
    """Nor does it count: Adam's later steps would be other ones."""
    optimiser, _ = CASES[case]
    padded = batches([True, False, True, False, False, True])
    real = [batch._replace(live=None) for batch in padded if batch.live]
    assert equal(
        train(start(), loss, padded, optimiser, mode=STACKED),
        train(start(), loss, real, optimiser, mode=STACKED),
    )


def test_padded_samples_do_not_count() -> None:
    logits = torch.randn(5, 3, generator=draw(2))
    y = torch.tensor([0, 2, 1, 0, 0])
    padded = Batch(logits, y, mask=torch.tensor([1.0, 1, 1, 0, 0]), stacked=True)
    real = Batch(logits[:3], y[:3])
    assert torch.allclose(cross_entropy(logits, padded), F.cross_entropy(logits[:3], y[:3]))
    assert padded.mean(logits[:, 0]) == pytest.approx(float(logits[:3, 0].mean()))
    for sums, expected in zip(class_sums(logits, padded, 3), class_sums(logits[:3], real, 3), strict=True):
        assert torch.allclose(sums, expected)


def test_only_trainable_leaves_move() -> None:
    names = ["classifier.weight", "classifier.bias"]
    ours = train(start(), loss, [b._replace(live=None) for b in batches([True] * 2)], SGD(lr=0.1), names)
    assert list(ours) == list(start())
    assert equal(ours.without(names), start().without(names))
    assert not torch.equal(ours["classifier.bias"], start()["classifier.bias"])


def test_a_scaled_optimiser_scales_all_rates_and_those_of_groups_to_come() -> None:
    scaled = AdamW(lr=0.1, groups=GROUPS).scaled(0.5).scaled(0.5)
    assert scaled.lr == 0.025 and scaled.rates(list(start())) == [0.025, 0.075, 0.005, 0.005]
    own = scaled.with_groups(Group(match="encoder.weight", lr=0.4))
    assert own.rates(list(start())) == pytest.approx([0.1, 0.075, 0.005, 0.005])


@pytest.mark.parametrize(
    "options",
    [
        {"name": "sgd", "lr": 0},
        {"name": "sgd", "lr": 0.1, "momentum": 1},
        {"name": "sgd", "lr": 0.1, "betas": [0.9, 0.99]},
        {"name": "adam", "lr": 0.1, "weight_decay": -1},
        {"name": "adam", "lr": 0.1, "momentum": 0.9},
        {"name": "adamw", "lr": 0.1, "weight_decay": -1},
        {"name": "lion", "lr": 0.1},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Optimiser).validate_python(options)


def in_a_stack(
    begin: Tree,
    of_step: Callable[[Tree, Batch], Tensor],
    optimiser: Optimiser,
    xs: Tensor,
    rates: Tensor,
    labels_differ: bool,
) -> list[list[Tree]]:
    """What each client (with x of its own) has in each cell (with a rate of its own) after its steps.

    Labels that differ from client to client let gradients be taken of the whole stack.
    """

    labels = (torch.arange(xs.shape[2]) % 2).expand(len(xs), -1)

    def of_one(x: Tensor, y: Tensor, rate: Tensor) -> dict[str, Tensor]:
        steps = [Batch(each, y if labels_differ else labels[0], stacked=True) for each in x]
        changed = optimiser.model_copy(update={"lr": rate})
        return train(begin, of_step, steps, changed, mode=STACKED).as_dict()

    of_cells = torch.func.vmap(of_one, in_dims=(None, None, 0))
    found = torch.func.vmap(of_cells, in_dims=(0, 0, None))(xs, labels, rates)
    return [
        [Tree({name: leaf[client, cell] for name, leaf in found.items()}) for cell in range(len(rates))]
        for client in range(len(xs))
    ]


def assert_like_one_by_one(
    begin: Tree,
    of_step: Callable[[Tree, Batch], Tensor],
    optimiser: Optimiser,
    labels_differ: bool = True,
) -> None:
    xs = torch.randn(3, 4, 6, 3, generator=draw(3))
    rates = torch.tensor([0.02, 0.1])
    before = {name: leaf.clone() for name, leaf in begin.items()}
    stack = in_a_stack(begin, of_step, optimiser, xs, rates, labels_differ)
    for x, of_client in zip(xs, stack, strict=True):
        for rate, found in zip(rates.tolist(), of_client, strict=True):
            steps = [Batch(each, torch.arange(len(each)) % 2) for each in x]
            alone = train(begin, of_step, steps, optimiser.model_copy(update={"lr": rate}))
            assert close(found, alone)
    assert equal(begin, Tree(before))


@pytest.mark.parametrize("labels_differ", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_steps_of_a_stack_are_those_of_each_client_and_cell(case: str, labels_differ: bool) -> None:
    assert_like_one_by_one(start(), loss, CASES[case][0], labels_differ)


def test_parameters_with_one_gradient_for_both_are_kept_apart() -> None:
    """Autograd gives a sum's parts the same tensor, which must not be overwritten for one of them."""

    def of_sum(params: Tree, batch: Batch) -> Tensor:
        return batch.mean((batch.x * (params["shared"] + params["own"])).square().sum(dim=1))

    begin = Tree({name: torch.randn(3, generator=draw(4)) for name in ("shared", "own")})
    assert_like_one_by_one(begin, of_sum, SGD(lr=0.1))
