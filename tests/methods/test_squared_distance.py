"""Squared distances in a stack: value and gradient are those of the plain formula."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import grad, vmap

from methods.core.tree import Tree
from methods.fast import norms
from methods.fast.fused_gradients import gradients, postpone_product, postpone_scaled
from methods.fast.norms import squared_distance, sum_of_squares
from methods.fast.stacked_gradient import plain_gradient, quick_gradient

CLIENTS, CELLS, SHAPE = 3, 2, (5, 4)
FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "leaf": squared_distance,
    "no leaf": lambda y, x: squared_distance(2 * y, x),
    "beside another term": lambda y, x: squared_distance(y, x) + (y**3).sum(),
    "twice": lambda y, x: squared_distance(y, x) + 3 * squared_distance(y, 2 * x),
    "root": lambda y, x: squared_distance(y, x).sqrt(),
    "product": lambda y, x: squared_distance(y, x) * y.sum(),
    "from itself": lambda y, x: squared_distance(y, y.detach() / 2),
    "between trained tensors": lambda y, x: squared_distance(y, y * y),
    "from the fixed one": lambda y, x: squared_distance(x, y),
    "broadcast": lambda y, x: squared_distance(y, x[0]),
}


def drawn(*levels: int) -> Tensor:
    return torch.randn(*levels, *SHAPE, dtype=torch.float64)


def test_one_client_gets_the_bits_of_the_plain_formula() -> None:
    y, x = drawn(), drawn()
    assert torch.equal(squared_distance(y, x), ((y - x) * (y - x)).sum())
    assert float(squared_distance(y, x)) == pytest.approx(np.square(y.numpy() - x.numpy()).sum())


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("gradient", [quick_gradient, plain_gradient])
@pytest.mark.parametrize(
    "levels", [(), (CLIENTS,), (CELLS,), (CLIENTS, CELLS)], ids=["no level", "clients", "cells", "both"]
)
def test_every_client_and_cell_gets_its_own(
    function: Callable[[Tensor, Tensor], Tensor],
    gradient: Callable[..., list[Tensor]],
    levels: tuple[int, ...],
) -> None:
    torch.manual_seed(0)
    y, x = drawn(CLIENTS, CELLS), drawn(*levels)
    by_client, by_cell = 0 if CLIENTS in levels else None, 0 if CELLS in levels else None

    def of_one(leaf: Tensor, fixed: Tensor) -> tuple[Tensor, Tensor]:
        return function(leaf, fixed), gradient(lambda leaves: function(leaves[0], fixed), [leaf])[0]

    values, grads = vmap(vmap(of_one, in_dims=(0, by_cell)), in_dims=(0, by_client))(y, x)
    everywhere = x.view(
        CLIENTS if CLIENTS in levels else 1, CELLS if CELLS in levels else 1, *SHAPE
    ).expand_as(y)
    for client in range(CLIENTS):
        for cell in range(CELLS):
            leaf, fixed = y[client, cell].clone().requires_grad_(), everywhere[client, cell]
            expected = function(leaf, fixed)
            torch.testing.assert_close(values[client, cell], expected.detach())
            torch.testing.assert_close(grads[client, cell], torch.autograd.grad(expected, leaf)[0])


def test_one_level_and_a_weight_per_client_give_the_closed_form() -> None:
    y, x, weights = drawn(CLIENTS), drawn(), torch.rand(CLIENTS, dtype=torch.float64)

    def of_one(leaf: Tensor, weight: Tensor) -> Tensor:
        return quick_gradient(lambda leaves: weight / 2 * squared_distance(leaves[0], x), [leaf])[0]

    np.testing.assert_allclose(
        vmap(of_one)(y, weights).numpy(),
        weights.numpy()[:, None, None] * (y.numpy() - x.numpy()),
        rtol=1e-14,
    )


def test_the_gradient_of_a_term_beside_another_has_the_bits_that_autograd_gives() -> None:
    y, x = torch.randn(CLIENTS, CELLS, *SHAPE), torch.randn(CELLS, *SHAPE)

    def late(leaf: Tensor, fixed: Tensor) -> Tensor:
        (found,) = quick_gradient(
            lambda leaves: 0.3 * squared_distance(leaves[0], fixed) + leaves[0].exp().sum(), [leaf]
        )
        return found

    def plain(leaf: Tensor, fixed: Tensor) -> Tensor:
        found: Tensor = grad(lambda y: 0.3 * sum_of_squares(y - fixed) + y.exp().sum())(leaf)
        return found

    found, expected = (vmap(vmap(of_one), in_dims=(0, None))(y, x) for of_one in (late, plain))
    assert torch.equal(found, expected)


def test_what_was_sent_and_the_parameters_stay_as_they_were() -> None:
    y, x = drawn(CLIENTS, CELLS), drawn(CELLS)
    before = y.clone(), x.clone()
    vmap(
        vmap(lambda y, x: quick_gradient(lambda leaves: squared_distance(leaves[0], x), [y])[0]),
        in_dims=(0, None),
    )(y, x)
    assert torch.equal(y, before[0]) and torch.equal(x, before[1])


def test_two_leaves_with_one_gradient_keep_their_own_parts() -> None:
    a, b, x = drawn(CLIENTS), drawn(CLIENTS), drawn()

    def of_one(a: Tensor, b: Tensor) -> list[Tensor]:  # autograd hands both the same tensor
        def value(leaves: list[Tensor]) -> Tensor:
            return (leaves[0] + leaves[1]).exp().sum() + squared_distance(leaves[0], x)

        return quick_gradient(value, [a, b])

    of_a, of_b = vmap(of_one)(a, b)
    torch.testing.assert_close(of_b, (a + b).exp())
    torch.testing.assert_close(of_a, (a + b).exp() + 2 * (a - x))


@pytest.mark.parametrize("function", [squared_distance, lambda y, x: sum_of_squares(y - x)])
def test_a_gradient_may_be_taken_around_the_stack(function: Callable[[Tensor, Tensor], Tensor]) -> None:
    y, x = drawn(CLIENTS), drawn()
    found = grad(lambda y: vmap(function, in_dims=(0, None))(y, x).sum())(y)
    torch.testing.assert_close(found, 2 * (y - x))


def test_it_can_be_differentiated_twice() -> None:
    y, x = drawn(CLIENTS).requires_grad_(), drawn()
    (first,) = torch.autograd.grad(
        vmap(lambda leaf: squared_distance(leaf, x) ** 2)(y).sum(), y, create_graph=True
    )
    (second,) = torch.autograd.grad(first.sum(), y)
    distances = ((y - x) ** 2).sum(dim=(1, 2), keepdim=True)
    expected = 4 * distances + 8 * (y - x) * (y - x).sum(dim=(1, 2), keepdim=True)
    torch.testing.assert_close(second, expected.detach())


def test_without_functorchs_internals_it_is_the_plain_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("in_stack", "is_shared"):
        monkeypatch.setattr(norms, name, lambda tensor: False)
    y, x = drawn(CLIENTS, CELLS), drawn(CELLS)
    found = vmap(vmap(grad(squared_distance)), in_dims=(0, None))(y, x)
    torch.testing.assert_close(found, 2 * (y - x))


def test_trees_have_the_distance_of_their_numbers() -> None:
    one, other = (Tree({"w": drawn(), "b": drawn(), "steps": torch.tensor(count)}) for count in (1, 1000))
    assert torch.equal(one.sqdist(other), (one - other).sqnorm())


def test_parts_are_left_for_later_only_while_a_gradient_is_computed() -> None:
    leaf = torch.ones(2, 3, requires_grad=True)
    assert not postpone_scaled(leaf, torch.ones(2, 3), torch.tensor(1.0))
    (found,) = gradients(leaf.sum(), [leaf])
    assert torch.equal(found, torch.ones(2, 3))
    with pytest.raises(RuntimeError):
        gradients(torch.ones(()), [leaf])
    assert not postpone_product(leaf, torch.ones(1, 2, 5), torch.ones(1, 5, 3))


def test_a_leaf_without_any_part_has_no_gradient() -> None:
    leaf, other = torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)
    assert torch.equal(gradients(leaf.sum(), [leaf, other])[1], torch.zeros(2))
