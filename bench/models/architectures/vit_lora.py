"""A frozen vision transformer from timm, with LoRA branches and a new head.

Any ViT in timm, with weights from the hub or a file. Images of another size are resized to the size that the
transformer was made for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import Field

from bench.errors import UserError, nearest
from bench.models.base import found_anywhere
from bench.models.vit import LoraOptions, load_weights
from methods.modules.split_model import SplitModel


class VitLora(LoraOptions):
    backbone: str = "vit_tiny_patch16_224"
    """The name of the transformer in timm."""
    weights: str = Field(default="hub", min_length=1)
    """`hub`: timm's, downloaded once; `random`; or the path of a file (safetensors, or saved by torch)."""
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    """The checksum that the file must have."""

    def identified(self) -> Self:
        if self.weights in ("hub", "random"):
            return self
        return self.model_copy(update={"weights": found_anywhere(self.weights)})

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        if len(shape) != 3 or shape[0] != 3:
            raise UserError(f"model 'vit_lora' takes images of three channels, not inputs of shape {shape}")
        vit = self._transformer()
        side = vit.patch_embed.img_size[0]
        return self.adapted(vit, classes, None if tuple(shape[1:]) == (side, side) else side)

    def _transformer(self) -> Any:
        import timm
        from timm.models import VisionTransformer

        known = timm.list_models("vit_*")
        if self.backbone.split(".")[0] not in known:
            raise UserError(
                f"model.backbone = '{self.backbone}': timm has no such ViT; {nearest(self.backbone, known)}"
            )
        try:
            vit = timm.create_model(self.backbone, pretrained=self.weights == "hub", num_classes=0)
        except (OSError, RuntimeError) as error:
            raise UserError(
                f"the weights of {self.backbone} cannot be fetched ({type(error).__name__}); go online once, "
                "or set model.weights to the path of a file that holds them"
            ) from error
        if not (isinstance(vit, VisionTransformer) and hasattr(vit.blocks[0].mlp, "fc2")):
            raise UserError(
                f"model.backbone = '{self.backbone}' is not a plain ViT; choose one like vit_tiny_patch16_224"
            )
        if self.weights not in ("hub", "random"):
            self._load(vit)
        return vit

    def _load(self, vit: Any) -> None:
        tensors = load_weights(Path(self.weights).expanduser(), self.sha256)
        own = vit.state_dict()
        fitting = {
            name: leaf for name, leaf in tensors.items() if name in own and leaf.shape == own[name].shape
        }
        if missing := own.keys() - fitting.keys():
            raise UserError(
                f"the weights file {self.weights} has no tensor for '{min(missing)}' of {self.backbone} "
                f"({len(missing)} are missing); give a file of that transformer's weights"
            )
        vit.load_state_dict(fitting)
