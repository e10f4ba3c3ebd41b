"""Images as bytes, and how models standardise them."""

import torch
from torch import Tensor, nn

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""ImageNet's channel statistics, which the public code of the domain-skew papers uses."""


class Pixels(nn.Module):
    """Bytes of an image to standardised floats; anything else passes as it is."""

    alike_in_training = True
    mean: Tensor
    std: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", 255 * torch.tensor(MEAN).view(3, 1, 1), persistent=False)
        self.register_buffer("std", 255 * torch.tensor(STD).view(3, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.standardised(x) if x.dtype == torch.uint8 else x

    def standardised(self, x: Tensor) -> Tensor:
        """Values from 0 to 255 as the standardised floats that the network sees."""
        return (x - self.mean) / self.std
