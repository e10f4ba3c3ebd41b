"""A model as one vector."""

import torch
from torch import Tensor

from methods.base import Tree


def flattened(model: Tree) -> Tensor:
    """All floating-point numbers of a model, leaf after leaf."""
    return torch.cat([leaf.flatten() for leaf in model.values() if leaf.is_floating_point()])


def unflattened(numbers: Tensor, like: Tree) -> Tree:
    """A model with these numbers; its integers are those of `like`."""
    sizes = [leaf.numel() for leaf in like.values() if leaf.is_floating_point()]
    parts = iter(numbers.split(sizes))
    return like.map(lambda leaf: next(parts).view_as(leaf).to(leaf.dtype))
