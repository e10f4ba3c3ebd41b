"""The linear layer of the models against PyTorch's own, one client at a time and stacked."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from bench.models.linear import Linear, _ProductOfCells
from methods.core.tree import Tree
from methods.fast.stacked_gradient import stacked_gradient


@pytest.mark.parametrize("bias", [True, False])
def test_a_stack_gets_the_outputs_and_gradients_of_its_clients_one_by_one(bias: bool) -> None:
    torch.manual_seed(0)
    layer, plain = Linear(6, 3, bias=bias), nn.Linear(6, 3, bias=bias)
    names = [name for name, _ in layer.named_parameters()]
    weights = [torch.randn(4, *leaf.shape) for leaf in layer.parameters()]
    x = torch.randn(4, 5, 6)

    def gradient(x: Tensor, *leaves: Tensor) -> list[Tensor]:
        def value(leaves: list[Tensor]) -> Tensor:
            out: Tensor = functional_call(layer, dict(zip(names, leaves, strict=True)), (x,))
            return out.exp().sum()

        return stacked_gradient(value, list(leaves), like=x)

    stacked = vmap(gradient)(x, *weights)
    for k in range(4):
        leaves = [weight[k].requires_grad_() for weight in weights]
        out = functional_call(plain, dict(zip(names, leaves, strict=True)), (x[k],))
        expected = torch.autograd.grad(out.exp().sum(), leaves)
        for got, wanted in zip([grad[k] for grad in stacked], expected, strict=True):
            torch.testing.assert_close(got, wanted)


def test_it_is_pytorchs_own_outside_a_stack() -> None:
    torch.manual_seed(0)
    layer, plain = Linear(6, 3), nn.Linear(6, 3)
    plain.load_state_dict(layer.state_dict())
    x = torch.randn(5, 6)
    assert torch.equal(layer(x), plain(x))


@pytest.mark.parametrize("shared", [True, False], ids=["shared samples", "own samples"])
@pytest.mark.parametrize("pulled", [True, False], ids=["with a pull", "without"])
def test_cells_get_the_gradients_of_two_layers_one_by_one(shared: bool, pulled: bool) -> None:
    torch.manual_seed(0)
    clients, cells = 3, 2
    layers, plain = (
        nn.Sequential(kind(6, 4), nn.Tanh(), kind(4, 3)).double() for kind in (Linear, nn.Linear)
    )
    names = [name for name, _ in layers.named_parameters()]
    weights = [torch.randn(clients, cells, *leaf.shape, dtype=torch.float64) for leaf in layers.parameters()]
    x = torch.randn(clients, *(() if shared else (cells,)), 5, 6, dtype=torch.float64)
    centre = [torch.randn_like(weight[0, 0]) for weight in weights]

    def value(model: nn.Module, leaves: list[Tensor], x: Tensor) -> Tensor:
        named = dict(zip(names, leaves, strict=True))
        scores: Tensor = functional_call(model, named, (x,))
        out = scores.exp().sum() + leaves[0].sin().sum()
        if not pulled:
            return out
        return out + 0.3 * Tree(named).sqdist(Tree(zip(names, centre, strict=True)))

    def gradient(x: Tensor, *leaves: Tensor) -> list[Tensor]:
        return stacked_gradient(lambda each: value(layers, each, x), list(leaves), like=x)

    inner = vmap(gradient, in_dims=(None if shared else 0, *[0] * len(weights)))
    stacked = vmap(inner)(x, *weights)
    for client in range(clients):
        for cell in range(cells):
            leaves = [weight[client, cell].clone().requires_grad_() for weight in weights]
            own = x[client] if shared else x[client, cell]
            expected = torch.autograd.grad(value(plain, leaves, own), leaves)
            for got, wanted in zip(stacked, expected, strict=True):
                torch.testing.assert_close(got[client, cell], wanted)


def test_the_product_of_cells_can_be_differentiated_twice() -> None:
    torch.manual_seed(0)
    weights, biases, x = (
        torch.randn(*shape, dtype=torch.float64, requires_grad=True)
        for shape in ((3, 2, 4, 6), (3, 2, 4), (3, 5, 6))
    )
    assert torch.autograd.gradgradcheck(_ProductOfCells.apply, (weights, biases, x))
