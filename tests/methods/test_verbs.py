"""What authors call instead of reaching into the framework: on the task, on trees and on batches."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, vmap

from methods.base import SGD, Adam, Batch, Samples, Tree, cross_entropy, is_off
from methods.core.batches import PIECE, PaddedBatches
from methods.core.loss_terms import LossTerms
from tests.kit.tiny import PLAIN, batch_norm_task, batches_of, close, cnn_task, equal, mlp_task, samples

LABELS = [0, 1, 2, 2, 0, 1, 1]


def a_batch() -> Batch:
    return Batch(*samples(LABELS, seed=1))


def plain_gradient(params: Tree, batch: Batch) -> Tree:
    """By PyTorch itself."""
    task = mlp_task()
    leaves = {name: leaf.clone().requires_grad_() for name, leaf in params.items()}
    loss = F.cross_entropy(functional_call(task.model, leaves, (batch.x,)), batch.y)
    return Tree(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))


# The task


def test_a_leaf_of_the_method_trains_only_if_it_is_named() -> None:
    task, batch = mlp_task(), a_batch()
    start = task.initial | Tree({"scale": torch.ones(()), "shift": torch.zeros(())})

    def loss(params: Tree, batch: Batch) -> Tensor:
        return cross_entropy(params["scale"] * task.logits(params, batch.x) + params["shift"], batch).square()

    trained = task.train(start, loss, [batch], also=["scale"])
    assert list(trained) == list(start)
    assert {name for name in start if not torch.equal(trained[name], start[name])} == {*task.initial, "scale"}


def test_one_step_of_training_follows_the_gradient_with_the_optimiser_that_is_given() -> None:
    task, batch = mlp_task(), a_batch()
    loss = lambda params, batch: cross_entropy(task.logits(params, batch.x), batch)  # noqa: E731
    gradient = task.gradient(task.initial, loss, batch)
    assert close(gradient, plain_gradient(task.initial, batch), tolerance=1e-7)
    for optimiser, rate in ((None, PLAIN.lr), (SGD(lr=0.5), 0.5)):
        stepped = task.train(task.initial, loss, [batch], optimiser)
        assert close(stepped, task.initial - rate * gradient, tolerance=1e-7)


def test_leaves_with_a_plain_rate_take_gradient_steps_beside_those_of_the_optimiser() -> None:
    """Here the loss is a sum of one of either, so that each goes its way as if it were alone."""
    task, batch = mlp_task(), a_batch()
    start = Tree({"scale": torch.tensor([1.0, -2.0])}) | task.initial

    def plain(params: Tree, batch: Batch) -> Tensor:
        return cross_entropy(task.logits(params, batch.x), batch)

    def both(params: Tree, batch: Batch) -> Tensor:
        return plain(params, batch) + params["scale"].pow(4).sum()

    scheduled = Adam(lr=0.02, clip_norm=0.1).scaled(0.5)
    trained = task.train(start, both, [batch] * 3, scheduled, also=["scale"], plain_rate=0.02)
    alone = task.train(task.initial, plain, [batch] * 3, scheduled)
    assert list(trained) == list(start)
    assert close(trained.without(["scale"]), alone, tolerance=1e-7)
    scale = start["scale"]
    for _ in range(3):
        scale = scale - 0.02 * 0.5 * 4 * scale.pow(3)
    torch.testing.assert_close(trained["scale"], scale)


def test_a_gradient_leaves_the_record_alone_and_skips_what_is_not_trained() -> None:
    task, terms = batch_norm_task(), LossTerms()
    batch = a_batch()._replace(terms=terms)
    loss = lambda params, batch: cross_entropy(task.logits(params, batch.x), batch)  # noqa: E731
    gradient = task.gradient(task.initial.clone(), loss, batch)
    assert set(gradient) == task.trainable < set(task.initial)
    assert terms.means() == {}
    task.train(task.initial, loss, [batch])
    assert set(terms.means()) == {"cross_entropy", "loss"}


def test_trained_leaves_are_found_in_any_tree() -> None:
    task = batch_norm_task()
    own = Tree({"gates": torch.zeros(2)})
    assert set(task.trained(task.initial | own)) == task.trainable
    assert list(task.trained(task.initial.part("classifier"))) == ["classifier.weight", "classifier.bias"]
    assert not task.trained(own)


def test_normal_numbers_of_a_task_depend_on_their_purpose() -> None:
    task = mlp_task()
    assert torch.equal(task.normal("one", 5, 3), task.normal("one", 5, 3))
    assert not torch.equal(task.normal("one", 5), task.normal("other", 5))


# Trees


def test_parts_of_a_model_keep_their_names() -> None:
    initial = cnn_task().initial
    parts = [initial.part(name) for name in ("encoder", "projector", "classifier")]
    assert all(parts) and [name for part in parts for name in part] == list(initial)
    assert not initial.part("class")


def test_names_under_a_prefix_are_taken_back() -> None:
    initial = cnn_task().initial
    under = initial.under("own")
    assert set(under) == {f"own.{name}" for name in initial}
    assert equal(under.below("own"), initial) and not under.part("classifier")


def test_clones_can_be_written_into() -> None:
    initial = mlp_task().initial
    copied = initial.clone()
    copied["classifier.bias"].add_(1)
    assert not torch.equal(copied["classifier.bias"], initial["classifier.bias"])


# Batches


def test_padding_does_not_count() -> None:
    batch = a_batch()
    assert float(batch.count) == 7 and batch.real.tolist() == [1] * 7
    mask = torch.tensor([1.0, 1, 0, 1, 0, 0, 0])
    padded = batch._replace(mask=mask)
    assert float(padded.count) == 3 and torch.equal(padded.real, mask)


@pytest.mark.parametrize("mask", [None, torch.tensor([1.0, 1, 1, 1, 0, 0, 0])])
def test_samples_that_are_not_chosen_count_as_padding(mask: Tensor | None) -> None:
    batch, even = a_batch()._replace(mask=mask), torch.arange(7) % 2 == 0
    kept = batch.keeping(even)
    real = [place for place in range(7 if mask is None else 4) if place % 2 == 0]
    assert float(kept.count) == len(real)
    values = torch.arange(7.0)
    assert float(kept.mean(values)) == pytest.approx(sum(real) / len(real))


def test_other_inputs_and_no_record() -> None:
    batch = a_batch()._replace(terms=LossTerms(), smoothing=0.1)
    changed = batch.with_inputs(torch.zeros(7, 2)).unrecorded()
    assert changed.x.shape == (7, 2) and changed.terms is None
    assert torch.equal(changed.y, batch.y) and changed.smoothing == 0.1


def test_all_samples_come_in_one_batch() -> None:
    data = samples([k % 3 for k in range(PIECE + 9)], seed=2)
    whole = batches_of(data, size=5).all()
    assert torch.equal(whole.x, data.x) and torch.equal(whole.y, data.y)
    assert whole.position.tolist() == list(range(PIECE + 9)) and whole.mask is None


def test_all_samples_of_a_stacked_client_come_with_their_mask() -> None:
    small, large = samples([0, 1, 2], seed=3), samples([k % 3 for k in range(PIECE + 9)], seed=4)
    x, y = torch.cat([small.x, large.x]), torch.cat([small.y, large.y])

    def of_one(start: Tensor, count: Tensor) -> Tensor:
        batches = PaddedBatches(
            x, y, torch.zeros(1, 2, dtype=torch.long), None, None, start, count, count, len(large.y), count
        )
        whole = batches.all()
        return (whole.x * whole.real[:, None]).sum(dim=0)

    sums = vmap(of_one)(torch.tensor([0, 3]), torch.tensor([3, PIECE + 9]))
    for found, own in zip(sums, (small, large), strict=True):
        torch.testing.assert_close(found, Samples(*own).x.sum(dim=0))


# Hyperparameters


def test_a_number_is_off_only_where_it_is_0_in_all_cells() -> None:
    assert is_off(0.0) and is_off(0)
    assert not is_off(1e-12) and not is_off(torch.tensor(0.0))
