"""The linear layer of the models against PyTorch's own, one client at a time and stacked."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from bench.models.linear import Linear
from methods.core.stacked_gradient import stacked_gradient


@pytest.mark.parametrize("bias", [True, False])
def test_a_stack_gets_the_outputs_and_gradients_of_its_clients_one_by_one(bias: bool) -> None:
    torch.manual_seed(0)
    layer, plain = Linear(6, 3, bias=bias), nn.Linear(6, 3, bias=bias)
    names = [name for name, _ in layer.named_parameters()]
    weights = [torch.randn(4, *leaf.shape) for leaf in layer.parameters()]
    x = torch.randn(4, 5, 6)

    def gradient(x: Tensor, *leaves: Tensor) -> list[Tensor]:
        def value(leaves: list[Tensor]) -> Tensor:
            out = functional_call(layer, dict(zip(names, leaves, strict=True)), (x,))
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
