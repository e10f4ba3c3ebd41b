"""Samples that are made when a client comes to them are those that would be made at once."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.func import vmap

from methods.base import Samples
from methods.fast.gather import Pieces, placed, rows
from methods.wrappers.ggeur.lazy_samples import FEWEST, AddedSamples, LazySamples
from tests.kit.tiny import draw

OWN, ADDED, WIDTH = 9, 73, 24


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=draw(seed))


def lazy(seed: int = 0, axes: int = 3) -> LazySamples:
    """A client's own samples, and two classes with samples around six points each."""
    own = Samples(drawn(OWN, WIDTH, seed=seed), torch.zeros(OWN, dtype=torch.int64))
    added = [
        AddedSamples(
            label,
            drawn(6, WIDTH, seed=seed + label),
            torch.arange(ADDED) % 6,
            drawn(ADDED, axes, seed=seed + 10 + label),
            drawn(WIDTH, axes, seed=seed + 20 + label),
        )
        for label in (1, 2)
    ]
    return LazySamples(own, added)


def taken(samples: LazySamples, at: Tensor) -> Tensor:
    return rows(samples, placed(samples, at))


@pytest.mark.parametrize("count", [1, FEWEST - 1, FEWEST, 60, 155])
def test_a_sample_is_the_same_whichever_others_are_made_with_it(count: int) -> None:
    whole, samples = lazy().all().x, lazy()
    order = torch.randperm(len(whole), generator=draw(count))
    for at in order.split(count):
        torch.testing.assert_close(taken(samples, at), whole[at])
    found = taken(samples, order)
    torch.testing.assert_close(found, whole[order])
    assert torch.equal(found, whole[order]) or not torch.backends.mkl.is_available()


def test_own_samples_come_first_and_added_ones_are_centres_plus_noise_along_the_axes() -> None:
    own = Samples(drawn(2, WIDTH), torch.tensor([3, 1]))
    centres, noise, vectors = drawn(2, WIDTH, seed=1), drawn(3, 4, seed=2), drawn(WIDTH, 4, seed=3)
    x, y = LazySamples(own, [AddedSamples(1, centres, torch.tensor([0, 1, 0]), noise, vectors)]).all()
    assert torch.equal(x[:2], own.x)
    torch.testing.assert_close(x[2:], centres[[0, 1, 0]] + noise @ vectors.T)
    assert y.tolist() == [3, 1, 1, 1, 1]


def test_only_samples_that_are_needed_are_made_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[int, list[int]]] = []
    real = AddedSamples.write

    def noted(self: AddedSamples, at: Tensor, into: Tensor) -> None:
        made.append((self.label, at.tolist()))
        real(self, at, into)

    monkeypatch.setattr(AddedSamples, "write", noted)
    samples = lazy()
    samples.places(torch.tensor([[OWN + 5, OWN + ADDED + 1], [OWN + ADDED + 1, OWN + 1]]))
    samples.places(torch.tensor([OWN + 1, 0, OWN + ADDED + 3, OWN + 5]))
    assert made == [(1, [1, 5]), (2, [1]), (2, [3])]


def test_all_samples_can_be_had_after_some() -> None:
    samples = lazy()
    some = taken(samples, torch.tensor([100, 3, 50]))
    assert torch.equal(samples.all().x, lazy().all().x)
    torch.testing.assert_close(taken(samples, torch.tensor([100, 3, 50])), some)


def test_clients_of_a_stack_take_samples_from_tables_of_their_own() -> None:
    given = drawn(20, WIDTH, seed=1)
    source = Pieces([lazy(seed=50), given, lazy(seed=70)], [1, 2, 1])
    at = torch.stack([torch.randperm(20, generator=draw(k)) for k in range(4)])
    found = vmap(lambda own: rows(source, placed(source, own)))(at)
    whole = [lazy(seed=50).all().x, given, given, lazy(seed=70).all().x]
    torch.testing.assert_close(found, torch.stack([x[own] for x, own in zip(whole, at, strict=True)]))


def test_one_table_serves_a_whole_stack() -> None:
    at = torch.randperm(100, generator=draw(0)).view(4, 25)
    samples = lazy()
    torch.testing.assert_close(vmap(lambda own: rows(samples, placed(samples, own)))(at), lazy().all().x[at])


@pytest.mark.parametrize(("axes", "is_compact"), [(1, True), (WIDTH, False)])
def test_samples_are_compact_where_little_is_kept_for_making_them(axes: int, is_compact: bool) -> None:
    assert lazy(axes=axes).is_compact is is_compact
