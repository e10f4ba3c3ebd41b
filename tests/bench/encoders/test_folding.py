"""Batch norm as part of convolutions: the same features, and nothing folded that does not belong together."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from bench.encoders import encoder_spec
from bench.encoders.folding import folded
from bench.encoders.loading import load_encoder
from tests.kit.data import noise


def with_statistics(model: nn.Module) -> nn.Module:
    """The network with batch norm that has seen data."""
    draw = torch.Generator().manual_seed(0)
    for part in model.modules():
        if isinstance(part, nn.BatchNorm2d):
            for values in (part.running_mean, part.running_var, part.weight.data, part.bias.data):
                assert values is not None
                values.copy_(torch.rand(values.shape, generator=draw) + 0.5)
    return model.eval()


def norms_of(model: nn.Module) -> int:
    return sum(isinstance(part, nn.BatchNorm2d) for part in model.modules())


@pytest.mark.parametrize("name", ["test_resnet", "test_efficientnet"])
def test_features_of_convolutional_networks_stay_the_same(name: str) -> None:
    import timm

    torch.manual_seed(0)
    model = with_statistics(timm.create_model(name, num_classes=0))
    pixels = torch.randn(3, 3, 64, 64)
    quick = folded(model, pixels[:1])
    assert norms_of(model) > 0
    assert norms_of(quick) == 0
    with torch.inference_mode():
        torch.testing.assert_close(quick(pixels), model(pixels), rtol=1e-4, atol=1e-4)


class Twice(nn.Module):
    """A network whose convolution feeds batch norm and something else."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.convolution(x)
        normed: Tensor = self.norm(y)
        return (normed + y).flatten(1)


def shared() -> nn.Module:
    norm = nn.BatchNorm2d(3)
    return nn.Sequential(nn.Conv2d(3, 3, 1), norm, nn.Conv2d(3, 3, 1), norm, nn.Flatten())


@pytest.mark.parametrize("make", [Twice, shared])
def test_what_is_used_more_than_once_stays(make: Callable[[], nn.Module]) -> None:
    model = with_statistics(make())
    assert folded(model, torch.randn(1, 3, 8, 8)) is model


def test_lite0_keeps_its_features() -> None:
    pictures = noise().train["left"].x[:3]
    plain, quick = (load_encoder(encoder_spec("efficientnet_lite0"), "cpu", fold=f) for f in (False, True))
    assert norms_of(plain.model) > 0
    assert norms_of(quick.model) == 0
    torch.testing.assert_close(
        torch.from_numpy(quick(pictures)), torch.from_numpy(plain(pictures)), rtol=1e-4, atol=1e-4
    )
