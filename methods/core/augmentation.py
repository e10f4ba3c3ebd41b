"""Random changes of a training batch, as functions of the step's key: the same in a loop and in a stack.

Every function takes a batch and returns one with other samples. Pictures are (samples, channels, height,
width). Streams of random numbers are far from those that methods use in their losses.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from methods.core.batches import Batch, Mixed

CROP, FLIP, BRIGHTNESS, CONTRAST, SATURATION, PAIRS, SHARE = range(1000, 1007)
GREY = (0.2989, 0.587, 0.114)
"""How much red, green and blue count in a grey version (ITU-R BT.601)."""
BRIGHTEST = 255.0


def cropped(batch: Batch, padding: int) -> Batch:
    """A part of the old size at a random place of the picture with a black margin (floats: zeros)."""
    x = batch.x
    count, channels, height, width = x.shape
    place = (batch.uniform(count, 2, stream=CROP) * (2 * padding + 1)).long()
    rows = place[:, 0, None] + torch.arange(height, device=x.device)
    columns = place[:, 1, None] + torch.arange(width, device=x.device)
    padded = F.pad(x, (padding, padding, padding, padding))
    strips = padded.gather(2, rows[:, None, :, None].expand(-1, channels, -1, width + 2 * padding))
    return batch._replace(x=strips.gather(3, columns[:, None, None, :].expand(-1, channels, height, -1)))


def flipped(batch: Batch) -> Batch:
    """Mirrored left to right with probability ½, sample by sample."""
    chosen = batch.uniform(len(batch.y), stream=FLIP) < 0.5
    return batch._replace(x=torch.where(chosen[:, None, None, None], batch.x.flip(-1), batch.x))


def jittered(batch: Batch, brightness: float, contrast: float, saturation: float) -> Batch:
    """Other colours, as floats from 0 to 255: first brightness, then contrast, then saturation.

    Each blends the picture with another one, black, its mean grey or its grey version, with a factor drawn
    from [1 − strength, 1 + strength] for every sample; what is too bright or too dark is cut off.
    """
    x = batch.x.float()
    if brightness:
        x = _blended(x, torch.zeros_like(x), _factors(batch, brightness, BRIGHTNESS))
    if contrast:
        x = _blended(x, _grey(x).mean(dim=(1, 2, 3), keepdim=True), _factors(batch, contrast, CONTRAST))
    if saturation:
        x = _blended(x, _grey(x), _factors(batch, saturation, SATURATION))
    return batch._replace(x=x)


def mixed(batch: Batch, shares: Tensor) -> Batch:
    """Mixup: every sample with some of another one of the batch, and so are the labels.

    Zhang et al., "mixup: Beyond Empirical Risk Minimization", ICLR 2018, with one share for the whole batch,
    as in the public code. The other sample's share is at most ½, which gives the same mixtures, since a pair
    is as likely in either order; `shares` has the quantiles of its distribution.
    """
    numbers = batch.uniform(len(batch.y), stream=PAIRS)
    if batch.mask is not None:  # padding is only paired with padding
        numbers = torch.where(batch.mask > 0, numbers, 2.0)
    partner = numbers.argsort()
    place = batch.uniform(1, stream=SHARE) * (len(shares) - 1)
    below = place.long()
    share = torch.lerp(shares[below], shares[below + 1], place - below)[0]
    return batch._replace(
        x=torch.lerp(batch.x, batch.x[partner], share), mixed=Mixed(batch.y[partner], share)
    )


def mixup_shares(alpha: float, points: int = 4097) -> Tensor:
    """Quantiles of min(λ, 1 − λ) with λ ~ Beta(α, α), at evenly spaced probabilities from 0 to 1."""
    import numpy as np
    from scipy.special import betaincinv

    return torch.from_numpy(betaincinv(alpha, alpha, np.linspace(0, 0.5, points))).float()


def _factors(batch: Batch, strength: float, stream: int) -> Tensor:
    numbers = batch.uniform(len(batch.y), stream=stream)
    return (1 + strength * (2 * numbers - 1))[:, None, None, None]


def _blended(x: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    return (other + factor * (x - other)).clamp(0, BRIGHTEST)


def _grey(x: Tensor) -> Tensor:
    """One channel."""
    if x.shape[1] != len(GREY):
        return x.mean(dim=1, keepdim=True)
    weights = torch.tensor(GREY, device=x.device).view(-1, 1, 1)
    return (x * weights).sum(dim=1, keepdim=True)
