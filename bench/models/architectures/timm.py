"""Any network of timm for pictures, trained as a whole: `model: timm:resnet18`, or with options

    model: {name: timm, source: resnet10t, norm: group, stem: small}

Weights are random by default. The encoder is the network up to its pooled features, the classifier its last
linear layer. Running means and variances of batch norm are averaged with the weights; its step counters are
not, and clients are computed one after the other. With group norm there is nothing to average but weights.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field
from torch import nn

from bench.errors import UserError, nearest
from bench.models.base import ModelSpec, check_pictures, found_anywhere
from bench.models.normalisation import with_group_norm
from bench.models.splitting import split
from bench.models.vit import load_weights
from methods.modules.split_model import SplitModel


class TimmModel(ModelSpec):
    source: str = Field(min_length=1)
    """The name of the network in timm, such as resnet10t or resnet18."""
    norm: Literal["batch", "group"] = "batch"
    """`batch`: the network's own layers; `group`: group norm in place of every batch norm."""
    groups: int = Field(default=32, ge=1, exclude_if=lambda groups: groups == 32)
    """Groups of channels, for group norm; fewer where a layer's channels cannot be divided by it."""
    stem: Literal["standard", "small"] = Field(default="standard", exclude_if=lambda stem: stem == "standard")
    """`small`: a ResNet whose first layers keep the size of the picture, for pictures of 32² or 64²."""
    weights: str = Field(default="random", min_length=1)
    """`random`; `hub`: timm's, downloaded once; or the path of a file (safetensors, or saved by torch)."""
    sha256: str | None = Field(
        default=None, pattern="^[0-9a-f]{64}$", exclude_if=lambda checksum: checksum is None
    )
    """The checksum of the file of weights, computed when a suite is planned; in a suite, it pins the file."""

    def identified(self) -> Self:
        file = Path(self.weights).expanduser()
        if self.weights in ("random", "hub") or not file.is_file():
            return self
        sha256 = self.sha256 or hashlib.sha256(file.read_bytes()).hexdigest()
        return self.model_copy(update={"sha256": sha256, "weights": found_anywhere(self.weights)})

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        check_pictures("timm", shape)
        network = self._network(shape[0], classes)
        if self.weights not in ("random", "hub"):
            self._load(network)
        if self.stem == "small":
            keep_size(network, self.source)
        if self.norm == "group":
            replaced = with_group_norm(network, self.groups)
            if not replaced:
                raise UserError(
                    f"model.norm = 'group': {self.source} has no batch norm to replace; leave out norm"
                )
        return split(network, shape, classes, classifier=_classifier(network, self.source))

    def _network(self, channels: int, classes: int) -> Any:
        import timm

        known = timm.list_models()
        if self.source.split(".")[0] not in known:
            raise UserError(
                f"model.source = '{self.source}': timm has no such network; {nearest(self.source, known)}"
            )
        try:
            return timm.create_model(
                self.source, pretrained=self.weights == "hub", num_classes=classes, in_chans=channels
            )
        except (OSError, RuntimeError) as error:
            raise UserError(
                f"the weights of {self.source} cannot be fetched ({type(error).__name__}); go online once, "
                "or set model.weights to random or to the path of a file that holds them"
            ) from error

    def _load(self, network: nn.Module) -> None:
        """Everything but the classifier, whose classes may be others."""
        tensors = load_weights(Path(self.weights).expanduser(), self.sha256)
        own = network.state_dict()
        head = f"{_classifier(network, self.source)}."
        needed = {name for name in own if not name.startswith(head) and own[name].is_floating_point()}
        fitting = {
            name: tensors[name] for name in needed & tensors.keys() if tensors[name].shape == own[name].shape
        }
        if missing := needed - fitting.keys():
            raise UserError(
                f"the weights file {self.weights} has no tensor for '{min(missing)}' of {self.source} "
                f"({len(missing)} are missing); give a file of that network's weights"
            )
        network.load_state_dict(fitting, strict=False)


def _classifier(network: Any, source: str) -> str:
    """The name of the last linear layer."""
    head = network.get_classifier()
    for name, part in network.named_modules():
        if part is head and isinstance(part, nn.Linear):
            return str(name)
    raise UserError(f"model.source = '{source}' does not end in one linear layer; choose another network")


def keep_size(network: nn.Module, source: str) -> None:
    """Let the first layers of a ResNet keep the size of its input, as ResNets for small pictures do.

    A 7×7 convolution becomes one of 3×3, strides become 1, and the pooling behind them is left out.
    """
    from timm.models import ResNet

    if not isinstance(network, ResNet):
        raise UserError(f"model.stem = 'small' is for ResNets, and {source} is none; leave out stem")
    resnet: Any = network
    stem = resnet.conv1
    if isinstance(stem, nn.Conv2d):
        smaller = nn.Conv2d(stem.in_channels, stem.out_channels, 3, padding=1, bias=False)
        nn.init.kaiming_normal_(smaller.weight, mode="fan_out", nonlinearity="relu")  # as timm draws them
        resnet.conv1 = smaller
    else:
        stem[0].stride = (1, 1)
    resnet.maxpool = nn.Identity()
