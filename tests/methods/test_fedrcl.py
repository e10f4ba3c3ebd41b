"""FedRCL's contrast against closed forms."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from methods.base import Batch
from methods.fedrcl import FedRCL
from tests.kit.tiny import head_task

TAU = 0.5
METHOD = FedRCL(temperature=TAU, beta=2.0, threshold=0.7)


def contrast(method: FedRCL, z: Tensor, labels: list[int], mask: Tensor | None = None) -> float:
    return float(method.contrast(z, Batch(z, torch.tensor(labels), mask)))


def test_a_class_that_has_collapsed() -> None:
    z = torch.tensor([[3.0, 4.0]]).expand(4, 2)
    assert contrast(METHOD, z, [0] * 4) == pytest.approx(math.log(3) + 2 * math.log(4))


def test_two_classes_at_right_angles() -> None:
    z = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 5.0]])
    pulled = math.log((math.exp(1 / TAU) + 2) / math.exp(1 / TAU))
    assert contrast(METHOD, z, [0, 0, 1, 1]) == pytest.approx(pulled + 2 * math.log(2))


def test_pairs_below_the_threshold_are_not_pushed_apart() -> None:
    z = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    assert contrast(METHOD, z, [0, 0]) == pytest.approx(0.0, abs=1e-6)
    pushed = math.log1p(math.exp((0.6 - 1) / TAU))
    lower = METHOD.model_copy(update={"threshold": 0.5})
    assert contrast(lower, z, [0, 0]) == pytest.approx(2 * pushed)


def test_a_step_moves_a_crowded_pair_apart() -> None:
    z = torch.tensor([[1.0, 0.0], [0.9, 0.1]], requires_grad=True)
    METHOD.contrast(z, Batch(z, torch.tensor([0, 0]))).backward()
    assert z.grad is not None
    before, after = z.detach(), (z - 0.01 * z.grad).detach()
    assert torch.cosine_similarity(after[0], after[1], dim=0) < torch.cosine_similarity(
        before[0], before[1], dim=0
    )


def test_a_sample_by_itself_and_padding_have_no_contrast() -> None:
    z = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    alone = METHOD.contrast(z, Batch(z, torch.tensor([1, 1, 1]), torch.tensor([1.0, 0.0, 0.0])))
    alone.backward()
    assert alone.item() == 0 and z.grad is not None and not z.grad.any()


def test_features_that_are_not_trained_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^has no effect where nothing before the classifier is trained"):
        FedRCL().check(head_task())
