"""Models are measured in evaluation mode whatever their layers are, and train on in the mode they had."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from bench.models import model_spec
from bench.models.base import seeded_model
from methods.base import Task
from methods.core.eval_mode import has_modes
from methods.modules.split_model import SplitModel
from tests.kit.tiny import (
    CLASSES,
    HIDDEN,
    WIDTH,
    batch_norm_task,
    cnn_task,
    head_task,
    mlp_task,
    samples,
    task_of,
)


class DropPath(nn.Module):
    """Leaves out the branch of a sample in training, always, so that a single call shows it."""

    def forward(self, x: Tensor) -> Tensor:
        return 0 * x if self.training else x


class NoisyReLU(nn.ReLU):
    """A layer of PyTorch with another behaviour in training than its parent."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + (1.0 if self.training else 0.0)


class OwnSwitch(nn.Module):
    """Keeps the mode in an attribute of its own."""

    noisy = True

    def train(self, mode: bool = True) -> OwnSwitch:
        self.noisy = mode
        return super().train(mode)

    def forward(self, x: Tensor) -> Tensor:
        return x + 1 if self.noisy else x


def task_with(layer: nn.Module) -> Task:
    encoder = nn.Sequential(nn.Linear(WIDTH, HIDDEN), layer)
    head = nn.Linear(HIDDEN, CLASSES)
    return task_of(SplitModel(encoder, nn.Identity(), head, feature_size=HIDDEN, embedding_size=HIDDEN))


@pytest.mark.parametrize("layer", [DropPath, NoisyReLU, OwnSwitch, nn.Dropout, nn.RReLU])
def test_any_layer_with_two_modes_is_evaluated_in_the_right_one(layer: type[nn.Module]) -> None:
    torch.manual_seed(0)
    task = task_with(layer())
    x = samples([0, 1, 2, 0], seed=1).x
    expected = task.model.eval()(x)
    task.model.train()
    with task.evaluation():
        assert torch.equal(task.logits(task.initial, x), expected)
    assert not torch.equal(task.logits(task.initial, x), expected), "it does not train on in training mode"


def test_a_part_that_stays_in_evaluation_mode_stays_there() -> None:
    task = task_with(DropPath())
    task.model.encoder[1].eval()  # type: ignore[index]
    with task.evaluation():
        assert not any(part.training for part in task.model.modules())
    left = [type(part).__name__ for part in task.model.modules() if not part.training]
    assert left == ["DropPath"]


def test_a_failure_leaves_the_modes_as_they_were() -> None:
    task = task_with(nn.Dropout())
    with pytest.raises(ZeroDivisionError), task.evaluation():
        _ = 1 / 0
    assert all(part.training for part in task.model.modules())


def test_plain_models_are_spared_the_switching() -> None:
    linear = seeded_model(model_spec({"name": "head"}), (WIDTH,), CLASSES, seed=0)
    for model in (head_task().model, mlp_task().model, cnn_task().model, linear):
        assert not has_modes(model)
    assert has_modes(batch_norm_task().model)
