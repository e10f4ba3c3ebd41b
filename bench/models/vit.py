"""A frozen vision transformer from timm with adapters, as a split model."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
import torch.nn.functional as F
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator
from torch import Tensor, nn

from bench.data.sources import reading
from bench.errors import UserError
from bench.models.adapters import ALPHA, RANK, AdapterSpec, with_adapter
from bench.models.base import ModelSpec, Pixels
from methods.modules.split_model import SplitModel

if TYPE_CHECKING:
    from timm.models import VisionTransformer


TARGETS = ("attn.proj", "mlp.fc2")
"""The output projections of every block's attention and MLP."""


class LoraOptions(ModelSpec):
    """Options of the adapters: LoRA on the output projections of every block, unless `adapter` says more."""

    rank: int = Field(default=RANK, gt=0)
    alpha: float = Field(default=ALPHA, gt=0)
    """The branches are scaled by alpha / rank."""
    adapter: AdapterSpec | None = Field(default=None, exclude_if=lambda adapter: adapter is None)
    """Another adapter of PEFT, such as {name: dora, r: 4}, instead of rank and alpha."""

    @model_validator(mode="after")
    def _is_given_once(self) -> Self:
        if self.adapter is not None and {"rank", "alpha"} & self.model_fields_set:
            raise ValueError("beside `adapter` there is no place for rank and alpha: give both inside it")
        return self

    @model_serializer(mode="wrap")
    def _as_given(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = serialise(self)
        unused = () if self.adapter is None else ("rank", "alpha")
        return {key: value for key, value in values.items() if key not in unused}

    def adapted(self, vit: VisionTransformer, classes: int, side: int | None = None) -> SplitModel:
        """The frozen transformer with new adapters and a new head; images are resized to `side`."""
        with_adapter(vit, self.adapter or AdapterSpec(r=self.rank, alpha=self.alpha), TARGETS)
        stages = [Pixels(), *([] if side is None else [Resize(side)]), vit]
        width = vit.num_features
        return SplitModel(
            nn.Sequential(*stages),
            nn.Identity(),
            nn.Linear(width, classes),
            feature_size=width,
            embedding_size=width,
        )


def small_vit() -> VisionTransformer:
    """The transformer of `vit_mini` with timm's initial weights: 16 tokens of width 64."""
    from timm.models import VisionTransformer

    vit = VisionTransformer(
        img_size=32,
        patch_size=8,
        embed_dim=64,
        depth=6,
        num_heads=4,
        mlp_ratio=2,
        num_classes=0,
        global_pool="avg",
        class_token=False,
    )
    block: Any
    for block in vit.blocks:
        # With so few tokens, plain attention is faster, and `vmap` supports it.
        block.attn.fused_attn = False
    return vit


class Resize(nn.Module):
    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, size=(self.side, self.side), mode="bilinear", antialias=False)


def load_weights(file: Path, sha256: str | None = None) -> dict[str, Tensor]:
    """A file of named tensors (safetensors, or saved by torch), read without executing code."""
    if not file.is_file():
        raise UserError(f"model: there is no weights file {file}; give the path of one")
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if sha256 is not None and found != sha256:
        raise UserError(
            f"model: the weights file {file.name} has the checksum {found}, not {sha256}; get it again"
        )
    with reading(file):
        if file.suffix == ".safetensors":
            from safetensors.torch import load_file

            tensors = load_file(file)
        else:
            tensors = torch.load(file, map_location="cpu", weights_only=True)
        return {name: tensor.float() for name, tensor in tensors.items()}
