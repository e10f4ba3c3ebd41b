"""A small vision transformer with LoRA branches, in both forms."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from tests.references.data import CLASSES

RANK, ALPHA, WIDTH, BLOCKS = 2, 16.0, 8, 2


def our_transformer() -> Any:
    from bench.contract.models import Vit
    from bench.models.base import seeded_model

    return seeded_model(Vit(rank=RANK, alpha=ALPHA), (3, 8, 8), CLASSES, seed=1)


class LoraLinear(nn.Module):
    """W x + b + s B_g A_g x, and with a private branch + m s B_p A_p x."""

    def __init__(self, frozen: nn.Linear) -> None:
        super().__init__()
        self.base_layer = frozen
        self.lora_A = nn.ModuleDict({"shared": nn.Linear(frozen.in_features, RANK, bias=False)})
        self.lora_B = nn.ModuleDict({"shared": nn.Linear(RANK, frozen.out_features, bias=False)})
        self.shared_gate = 1.0
        self.private: tuple[Tensor, Tensor, Tensor | float] | None = None
        """A_p, B_p and the gate m, where there is a private branch."""

    def forward(self, x: Tensor) -> Tensor:
        scale = ALPHA / RANK
        shared = self.lora_B["shared"](self.lora_A["shared"](x))
        out: Tensor = self.base_layer(x) + self.shared_gate * scale * shared
        if self.private is None:
            return out
        a, b, gate = self.private
        return out + gate * scale * (x @ a.T @ b.T)


class Transformer(nn.Module):
    """A frozen timm transformer whose attention and MLP outputs have LoRA branches, and a linear head."""

    def __init__(self) -> None:
        super().__init__()
        from timm.models import VisionTransformer

        vit: Any = VisionTransformer(
            img_size=8,
            patch_size=4,
            embed_dim=WIDTH,
            depth=BLOCKS,
            num_heads=2,
            mlp_ratio=2,
            num_classes=0,
            global_pool="avg",
            class_token=False,
        )
        vit.requires_grad_(False)
        for block in vit.blocks:
            block.attn.proj, block.mlp.fc2 = LoraLinear(block.attn.proj), LoraLinear(block.mlp.fc2)
        self.encoder, self.projector = nn.Sequential(nn.Identity(), vit), nn.Identity()
        self.classifier = nn.Linear(WIDTH, CLASSES)

    def adapted(self) -> list[tuple[str, LoraLinear]]:
        """The layers with LoRA branches and their names, block by block."""
        return [(name, layer) for name, layer in self.named_modules() if isinstance(layer, LoraLinear)]

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.encoder(x))
        return logits


def plain_transformer() -> nn.Module:
    return Transformer()
