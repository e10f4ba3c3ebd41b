"""Squared lengths in a stack: value, gradient and second derivative are those of x · x."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.func import grad, vmap

from methods.fast.norms import sum_of_squares
from methods.fast.stacked_gradient import quick_gradient

LEVELS = (3, 2)


def test_one_number_for_every_client_and_cell() -> None:
    x = torch.randn(*LEVELS, 5, 4, dtype=torch.float64)
    found = vmap(vmap(sum_of_squares))(x)
    assert torch.allclose(found, (x * x).sum(dim=(-2, -1)), rtol=1e-12)


def test_a_number_by_itself_is_squared() -> None:
    x = torch.randn(*LEVELS, dtype=torch.float64)
    assert torch.allclose(vmap(vmap(sum_of_squares))(x), x * x, rtol=1e-12)


def test_the_gradient_is_that_of_the_plain_product_to_the_last_bit() -> None:
    x, centre, weight = torch.randn(*LEVELS, 5, 4), torch.randn(LEVELS[1], 5, 4), torch.rand(LEVELS[1])

    def gradient(params: Tensor, c: Tensor, w: Tensor) -> Tensor:
        (found,) = quick_gradient(lambda leaves: w / 2 * sum_of_squares(leaves[0] - c), [params])
        return found

    def plain(params: Tensor, c: Tensor, w: Tensor) -> Tensor:
        found: Tensor = grad(lambda p: w / 2 * ((p - c) * (p - c)).sum())(params)
        return found

    found, expected = (
        vmap(vmap(of_one), in_dims=(0, None, None))(x, centre, weight) for of_one in (gradient, plain)
    )
    assert torch.equal(found, expected)
    assert torch.allclose(found, weight[:, None, None] * (x - centre))


def test_it_can_be_differentiated_twice() -> None:
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    square = torch.ones(3, dtype=torch.float64)

    def of_one(leaf: Tensor) -> Tensor:
        return sum_of_squares(leaf)

    first = torch.autograd.grad(vmap(of_one)(x).pow(2).sum(), x, create_graph=True)[0]
    second = torch.autograd.grad(first[:, 0].sum(), x)[0]
    lengths = (x * x).sum(dim=1)
    expected = 8 * x[:, :1] * x
    expected[:, 0] += 4 * lengths * square
    assert torch.allclose(second, expected)
