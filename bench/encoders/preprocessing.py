"""From stored pictures to what an encoder expects: scaled, cut and normalised, a batch at a time."""

from dataclasses import dataclass
from typing import Literal

import torch


@dataclass(frozen=True)
class Preprocessing:
    side: int
    """Pictures are squares; they are scaled to this side."""
    crop: int
    """Then the middle square of this side is cut out."""
    interpolation: Literal["bilinear", "bicubic"]
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __call__(self, pictures: torch.Tensor) -> torch.Tensor:
        """uint8 (N, 3, S, S) → float32 (N, 3, crop, crop)."""
        pixels = pictures.float()
        if pixels.shape[-2:] != (self.side, self.side):
            pixels = torch.nn.functional.interpolate(
                pixels, size=(self.side, self.side), mode=self.interpolation, antialias=True
            )
            # The libraries scale pictures of bytes: what bicubic overshoots is cut, and fractions are lost.
            pixels = pixels.round().clamp(0, 255)
        margin = round((self.side - self.crop) / 2)
        pixels = pixels[..., margin : margin + self.crop, margin : margin + self.crop]
        mean, std = (pixels.new_tensor(values).view(-1, 1, 1) for values in (self.mean, self.std))
        return (pixels / 255 - mean) / std
