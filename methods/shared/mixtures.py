"""Gaussian mixtures: fitted by expectation and maximisation, and drawn from."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Generator, Tensor

from methods.shared.virtual import symmetric_root

Covariance: TypeAlias = Literal["spherical", "diagonal", "full"]


class Mixture(NamedTuple):
    """k Gaussians in d dimensions."""

    weights: Tensor
    means: Tensor
    """k × d."""
    covariances: Tensor
    """Variances: k (spherical) or k × d (diagonal); or k × d × d (full)."""


def fitted(x: Tensor, most: int, kind: Covariance, steps: int, floor: float, draw: Generator) -> Mixture:
    """A mixture of at most so many components, each of which stands for two samples or more.

    Begins with min(most, n/2) components and takes one fewer until the responsibilities of each sum to 2.
    """
    for components in range(min(most, len(x) // 2), 1, -1):
        mixture = expectation_maximisation(x, components, kind, steps, floor, draw)
        if bool((mixture.weights * len(x) >= 2).all()):
            return mixture
    return maximised(x, x.new_ones(len(x), 1), kind, floor)


def expectation_maximisation(
    x: Tensor, components: int, kind: Covariance, steps: int, floor: float, draw: Generator
) -> Mixture:
    """Begins with samples as centres and every sample assigned to the nearest of them."""
    centres = x[torch.randperm(len(x), generator=draw)[:components].to(x.device)]
    nearest = torch.cdist(x, centres).argmin(dim=1)
    mixture = maximised(x, torch.nn.functional.one_hot(nearest, components).to(x.dtype), kind, floor)
    for _ in range(steps):
        mixture = maximised(x, log_joint(mixture, x).softmax(dim=1), kind, floor)
    return mixture


def maximised(x: Tensor, responsibilities: Tensor, kind: Covariance, floor: float) -> Mixture:
    """The mixture that fits best if samples belong to components in these shares."""
    counts = responsibilities.sum(dim=0).clamp(min=torch.finfo(x.dtype).eps)
    shares = responsibilities / counts
    means = shares.T @ x
    covariances = []
    for share, mean in zip(shares.T, means, strict=True):
        centred = x - mean
        if kind == "full":
            covariance = (share[:, None] * centred).T @ centred
            covariances.append(covariance + floor * torch.eye(len(mean), dtype=x.dtype, device=x.device))
        else:
            variances = share @ centred.square()
            covariances.append((variances.mean() if kind == "spherical" else variances) + floor)
    return Mixture(counts / len(x), means, torch.stack(covariances))


def log_joint(mixture: Mixture, x: Tensor) -> Tensor:
    """Sample by sample and component by component the logarithm of weight × density."""
    columns = []
    for weight, mean, covariance in zip(*mixture, strict=True):
        centred = x - mean
        if covariance.dim() == 2:
            factor = torch.linalg.cholesky_ex(covariance).L  # NaN instead of an error, so that it is noticed
            scaled = torch.linalg.solve_triangular(factor, centred.T, upper=False).T
            log_volume = factor.diagonal().log().sum()
        else:
            deviations = covariance.sqrt().expand(len(mean))
            scaled, log_volume = centred / deviations, deviations.log().sum()
        constant = weight.log() - log_volume - len(mean) / 2 * math.log(2 * math.pi)
        columns.append(constant - scaled.square().sum(dim=1) / 2)
    return torch.stack(columns, dim=1)


def drawn(mixture: Mixture, count: int, draw: Generator) -> Tensor:
    """So many samples of the mixture; first the component of each is drawn, then all deviations."""
    chosen = torch.multinomial(mixture.weights.cpu(), count, replacement=True, generator=draw)
    chosen = chosen.to(mixture.means.device)
    epsilon = torch.randn(count, mixture.means.shape[1], generator=draw).to(mixture.means)
    if mixture.covariances.dim() == 3:
        for component, covariance in enumerate(mixture.covariances):
            members = chosen == component
            epsilon[members] = epsilon[members] @ symmetric_root(covariance)
        return mixture.means[chosen] + epsilon
    deviations = mixture.covariances.sqrt().view(len(mixture.weights), -1)
    return mixture.means[chosen] + epsilon * deviations[chosen]
