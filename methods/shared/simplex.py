"""Quadratic programmes over the simplex."""

import torch
from torch import Tensor


def onto_simplex(points: Tensor) -> Tensor:
    """The nearest points with entries that are not negative and sum to 1, row by row (Held et al., 1974)."""
    falling = points.sort(dim=-1, descending=True).values
    counts = torch.arange(1, points.shape[-1] + 1, device=points.device, dtype=points.dtype)
    shifts = (falling.cumsum(dim=-1) - 1) / counts
    kept = (falling > shifts).sum(dim=-1, keepdim=True)
    return (points - shifts.gather(-1, kept - 1)).clamp(min=0)


def smallest_form(matrices: Tensor, steps: int = 1000) -> Tensor:
    """argmin αᵀPα over the simplex for a batch of positive semidefinite P (batch × m × m).

    Projected gradient steps with Nesterov's momentum (FISTA) from the uniform point, in double precision; a
    matrix of zeros keeps it.
    """
    p = matrices.double()
    largest = torch.linalg.eigvalsh(p)[..., -1]
    rate = 1 / (2 * largest.clamp(min=torch.finfo(p.dtype).tiny))[..., None]
    alpha = torch.full(p.shape[:-1], 1 / p.shape[-1], dtype=p.dtype, device=p.device)
    ahead, weight = alpha, 1.0
    for _ in range(steps):
        slope = 2 * (p @ ahead[..., None])[..., 0]
        moved = onto_simplex(ahead - rate * slope)
        following = (1 + (1 + 4 * weight**2) ** 0.5) / 2
        ahead = moved + (weight - 1) / following * (moved - alpha)
        alpha, weight = moved, following
    return alpha
