"""Rows of samples, for clients of a stack that take them from several places."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.func import vmap

from methods.fast.gather import Pieces, rows
from tests.kit.tiny import draw


@pytest.mark.parametrize("shape", [(), (5,), (3, 4, 4)])
def test_rows_of_several_tensors_are_those_of_one(shape: tuple[int, ...]) -> None:
    tensors = [torch.randn(count, *shape, generator=draw(count)) for count in (7, 4, 9)]
    clients = [2, 1, 3]
    firsts = torch.tensor([0, 0, 7, 11, 11, 11])
    at = torch.stack([torch.randint(0, 4, (6,), generator=draw(k)) for k in range(len(firsts))])
    whole = torch.cat(tensors)

    def taken(positions: Tensor) -> Tensor:
        return rows(Pieces(tensors, clients), positions)

    assert torch.equal(vmap(taken)(at), whole[at + firsts[:, None]])


def test_pictures_keep_their_memory_format() -> None:
    pictures = [
        torch.randn(6, 3, 4, 4, generator=draw(k)).contiguous(memory_format=torch.channels_last)
        for k in range(2)
    ]
    positions = torch.tensor([[0, 5], [3, 3]])
    found = Pieces(pictures, [1, 1]).at(positions)
    assert found.flatten(0, 1).is_contiguous(memory_format=torch.channels_last)
