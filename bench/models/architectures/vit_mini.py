"""A small frozen vision transformer (6 blocks, 32×32 images) with LoRA branches; its weights are included.

They were trained by `scripts/pretrain_vit_mini.py` on digits drawn from Matplotlib's fonts alone, without any
image of any dataset. The domain `fonts` of digits_mini is drawn in another way from the same fonts, so that
results on it would be too good; the suite `quickstart_fedsdg` leaves it out.
"""

from __future__ import annotations

from pathlib import Path

from bench.errors import UserError
from bench.models.vit import LoraOptions, load_weights, small_vit
from methods.modules.split_model import SplitModel

WEIGHTS = Path(__file__).parents[1] / "weights" / "vit_mini.safetensors"
SHA256 = "7d38989b2ff20597951deffef4154413e52038395e0a89831c16700fea9f0cc4"


class VitMini(LoraOptions):
    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        if shape != (3, 32, 32):
            raise UserError(f"model 'vit_mini' takes images of 3×32×32, not {'×'.join(map(str, shape))}")
        vit = small_vit()
        vit.load_state_dict(load_weights(WEIGHTS, SHA256))
        return self.adapted(vit, classes)
