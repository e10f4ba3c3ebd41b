"""A small network of two linear layers that a server trains, as a tree of its weights."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from methods.base import Tree


def new_layers(inputs: int, hidden: int, outputs: int, draw: Generator) -> Tree:
    """Weights and biases, drawn within PyTorch's usual bounds for linear layers."""

    def uniform(fan_in: int, *shape: int) -> Tensor:
        return (torch.rand(*shape, generator=draw) * 2 - 1) / float(fan_in**0.5)

    return Tree(
        {
            "W1": uniform(inputs, hidden, inputs),
            "b1": uniform(inputs, hidden),
            "W2": uniform(hidden, outputs, hidden),
            "b2": uniform(hidden, outputs),
        }
    )


def two_layers(weights: Tree, x: Tensor) -> Tensor:
    """Linear–ReLU–Linear."""
    hidden = F.relu(F.linear(x, weights["W1"], weights["b1"]))
    return F.linear(hidden, weights["W2"], weights["b2"])
