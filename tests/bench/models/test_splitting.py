"""Any module as encoder, projector and classifier: against the module's own output and gradients."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from bench.errors import UserError
from bench.models.splitting import split
from methods.fedavg import FedAvg
from methods.modules.pixels import Pixels
from tests.kit.tiny import batches_of, draw, federation, samples, task_of


class Plain(nn.Module):
    """An encoder with batch norm and dropout, a projection, and a head that is not defined last."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 3)
        self.body = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.5))
        self.projection = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.projection(self.body(x)))
        return logits


class Scaled(Plain):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


@pytest.fixture
def plain() -> Plain:
    torch.manual_seed(0)
    return Plain()


@pytest.mark.parametrize("projector", [None, "projection"])
def test_the_parts_are_the_whole(plain: Plain, projector: str | None) -> None:
    whole = copy.deepcopy(plain)
    model = split(plain, (5,), 3, "head", projector)
    assert (model.feature_size, model.embedding_size) == (6 if projector else 4, 4)
    assert model.training and plain.body[1].training
    assert all(
        torch.equal(leaf, dict(whole.named_buffers())[name.removeprefix("encoder.1.")])
        for name, leaf in model.named_buffers()
        if "running" in name
    )
    x = torch.randn(7, 5, generator=draw(1))
    for module in (whole, model):
        module.eval()
    task = task_of(model)
    z = task.encode(task.initial, x)
    torch.testing.assert_close(task.logits_from(task.initial, z), whole(x))
    torch.testing.assert_close(task.logits(task.initial, x), whole(x))
    grown = [leaf for leaf in model.parameters() if leaf.requires_grad]
    assert sum(leaf.numel() for leaf in grown) == sum(leaf.numel() for leaf in whole.parameters())


def test_gradients_by_functional_call_are_those_of_the_module(plain: Plain) -> None:
    whole = copy.deepcopy(plain).eval()
    model = split(plain, (5,), 3, "head", "projection").eval()
    x = torch.randn(7, 5, generator=draw(1))
    whole(x).exp().sum().backward()
    leaves = {name: leaf.detach().requires_grad_() for name, leaf in model.named_parameters()}
    functional_call(model, leaves, (x,)).exp().sum().backward()
    torch.testing.assert_close(leaves["classifier.weight"].grad, whole.head.weight.grad)
    torch.testing.assert_close(leaves["projector.weight"].grad, whole.projection.weight.grad)
    torch.testing.assert_close(leaves["encoder.1.body.0.weight"].grad, whole.body[0].weight.grad)


def test_bytes_of_pictures_are_standardised() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    whole = copy.deepcopy(module)
    model = split(module, (3, 8, 8), 2)  # without a name: the last linear layer
    pictures = torch.randint(0, 256, (5, 3, 8, 8), generator=draw(0), dtype=torch.uint8)
    torch.testing.assert_close(model(pictures), whole(Pixels()(pictures)))
    assert model.feature_size == 4


def test_a_single_layer_is_a_classifier() -> None:
    layer = nn.Linear(5, 3)
    model = split(layer, (5,), 3)
    assert model.classifier is layer and model.feature_size == 5


def test_a_model_with_batch_norm_is_trained_by_a_federation(plain: Plain) -> None:
    task = task_of(split(plain, (5,), 3, "head"))
    clients = [samples([0, 1, 2, 1], seed=k) for k in range(3)]
    run, _ = federation(FedAvg(), task, clients)
    run.advance()
    moved = [name for name, leaf in run.server["model"].items() if not torch.equal(leaf, task.initial[name])]
    assert "encoder.1.body.1.running_mean" in moved
    assert {"classifier.weight", "encoder.1.body.0.weight"} <= set(moved)
    assert len(list(batches_of(clients[0]))) == 1


@pytest.mark.parametrize(
    ("module", "classifier", "projector", "message"),
    [
        (Plain(), "haed", None, "no submodule 'haed'; did you mean 'head'"),
        (Plain(), "projection", None, "without 'projection', which must be its last step, fails"),
        (Plain(), "head", "body", "without 'body' and 'head', which must be its last step, fails"),
        (Scaled(), "head", None, "'head' cannot be its last step: the parts"),
        (nn.Sequential(nn.Linear(5, 4)), None, None, r"output has shape \(2, 4\) for 2 samples"),
        (nn.Sequential(nn.Linear(7, 3)), None, None, r"model\(x\) fails for inputs of shape \(2, 5\): "),
        (nn.Sequential(nn.ReLU()), None, None, "no linear layer"),
    ],
)
def test_why_a_module_cannot_be_divided(
    module: nn.Module, classifier: str | None, projector: str | None, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        split(module, (5,), 3, classifier, projector)
