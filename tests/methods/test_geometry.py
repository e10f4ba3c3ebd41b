"""Principal axes of classes with far fewer samples than dimensions."""

import pytest
import torch
from torch import Tensor

from methods.shared.geometry import Moments, moments, no_moments, pooled, principal_axes, with_more
from tests.kit.tiny import draw

WIDTH = 128


def pooled_classes(sizes: tuple[tuple[int, int], ...]) -> Moments:
    """Two clients' statistics of some classes, added up; lengths along the axes differ a lot."""
    source = draw(1)
    lengths = torch.logspace(0, -4, WIDTH, dtype=torch.float64)
    parts = []
    for client in range(2):
        x = torch.cat(
            [torch.randn(size[client], WIDTH, generator=source, dtype=torch.float64) for size in sizes]
        )
        y = torch.cat([torch.full((size[client],), label) for label, size in enumerate(sizes)])
        parts.append(moments(x * lengths + client, y, torch.arange(len(sizes))))
    return pooled(*parts)


def rebuilt(values: Tensor, vectors: Tensor) -> Tensor:
    return (vectors * values[:, None]) @ vectors.mT


def test_few_samples_have_few_axes_and_the_same_covariance() -> None:
    found = pooled_classes(((20, 31), (2, 3)))
    few, all_axes = principal_axes(found.covariances, counts=found.counts), principal_axes(found.covariances)
    assert few.eigenvectors.shape == (2, WIDTH, 50)
    assert all_axes.eigenvectors.shape == (2, WIDTH, WIDTH)
    gap = (rebuilt(*few) - rebuilt(*all_axes)).flatten(1).norm(dim=1)
    assert bool((gap < 1e-8 * found.covariances.flatten(1).norm(dim=1)).all())
    assert bool((few.eigenvalues.diff(dim=1) <= 0).all())
    largest = all_axes.eigenvalues[:, :1]
    torch.testing.assert_close(
        few.eigenvalues / largest, all_axes.eigenvalues[:, :50] / largest, rtol=0, atol=1e-12
    )
    assert float(all_axes.eigenvalues[1, 4] / largest[1, 0]) < 1e-12  # five samples have four axes


def test_the_longest_axes_are_those_of_the_whole_decomposition() -> None:
    found = pooled_classes(((20, 20), (15, 15)))
    few = principal_axes(found.covariances, top_k=3, counts=found.counts)
    whole = principal_axes(found.covariances, top_k=3)
    cosines = (few.eigenvectors * whole.eigenvectors).sum(dim=1).abs()
    torch.testing.assert_close(cosines, torch.ones_like(cosines), rtol=0, atol=1e-8)


@pytest.mark.parametrize(("counts", "ridge"), [([WIDTH, 3], 0.0), ([5, 3], 0.1)])
def test_many_samples_or_a_ridge_need_all_axes(counts: list[int], ridge: float) -> None:
    covariances = torch.eye(WIDTH, dtype=torch.float64).expand(2, -1, -1)
    axes = principal_axes(covariances, ridge, counts=torch.tensor(counts))
    assert axes.eigenvalues.shape == (2, WIDTH)


def test_more_samples_of_some_classes_leave_the_others_as_they_were() -> None:
    x, y = torch.randn(60, 8, generator=draw(3)), torch.arange(60) % 4
    everything = moments(x, y, torch.arange(4))
    first, rest = moments(x[:20], y[:20], torch.arange(4)), moments(x[20:], y[20:], torch.tensor([3, 1]))
    found = with_more(first, torch.tensor([3, 1]), rest)
    for whole, before, now in zip(everything, first, found, strict=True):
        torch.testing.assert_close(now[[1, 3]], whole[[1, 3]])
        assert torch.equal(now[[0, 2]], before[[0, 2]])
    from_nothing = with_more(no_moments(4, 8, x.device), torch.arange(4), first)
    for one, other in zip(from_nothing, first, strict=True):
        assert torch.equal(one, other)
