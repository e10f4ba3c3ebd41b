"""Samples that are made when a client comes to them are those that would be made at once."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.func import vmap

from methods.core.late_rows import Given, LateRows
from methods.core.rows import Pieces, placed, rows
from methods.wrappers.ggeur import FEWEST, Around, Centres
from tests.kit.tiny import draw

WIDTH = 24


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=draw(seed))


def late(seed: int = 0, axes: int = 3) -> LateRows:
    """A client's own samples, and two classes with samples around some of them."""
    classes = [
        Around(
            [Centres(drawn(5, WIDTH, seed=seed + c), 43), Centres(drawn(1, WIDTH, seed=seed - c), 30)],
            drawn(73, axes, seed=seed + 10 + c),
            drawn(WIDTH, axes, seed=seed + 20 + c),
        )
        for c in (1, 2)
    ]
    return LateRows([Given(drawn(9, WIDTH, seed=seed)), *classes], like=torch.empty(0, WIDTH))


def taken(table: LateRows, at: Tensor) -> Tensor:
    return rows(table, placed(table, at))


@pytest.mark.parametrize("count", [1, FEWEST - 1, FEWEST, 60, 155])
def test_a_row_is_the_same_whichever_others_are_made_with_it(count: int) -> None:
    whole, table = late().all(), late()
    order = torch.randperm(len(table), generator=draw(count))
    for at in order.split(count):
        torch.testing.assert_close(taken(table, at), whole[at])
    found = taken(table, order)
    torch.testing.assert_close(found, whole[order])
    assert torch.equal(found, whole[order]) or not torch.backends.mkl.is_available()


def test_only_rows_that_are_needed_are_made() -> None:
    made: list[list[int]] = []

    class Counting(Given):
        def write(self, at: Tensor | None, into: Tensor) -> None:
            made.append([] if at is None else at.tolist())
            super().write(at, into)

    table = LateRows([Counting(drawn(8, 2)), Counting(drawn(4, 2))], like=torch.empty(0, 2))
    table.placed(torch.tensor([[5, 9], [9, 1]]))
    table.placed(torch.tensor([1, 5, 11, 0]))
    assert made == [[1, 5], [1], [0], [3]]


def test_all_rows_can_be_had_after_some() -> None:
    table = late()
    some = taken(table, torch.tensor([100, 3, 50]))
    whole = table.all()
    assert torch.equal(whole, late().all())
    torch.testing.assert_close(taken(table, torch.tensor([100, 3, 50])), some)


def test_samples_are_around_their_centres_in_turn() -> None:
    around = Around(
        [Centres(drawn(2, WIDTH), 5), Centres(drawn(1, WIDTH, seed=1), 2)], torch.zeros(7, 1), drawn(WIDTH, 1)
    )
    found = torch.empty(7, WIDTH)
    around.write(None, found)
    first, second = drawn(2, WIDTH)
    other = drawn(1, WIDTH, seed=1)[0]
    assert torch.equal(found, torch.stack([first, second, first, second, first, other, other]))


def test_clients_of_a_stack_take_rows_from_tables_of_their_own() -> None:
    given = drawn(20, WIDTH, seed=1)
    source = Pieces([late(seed=50), given, late(seed=70)], [1, 2, 1])
    at = torch.stack([torch.randperm(20, generator=draw(k)) for k in range(4)])
    found = vmap(lambda own: rows(source, placed(source, own)))(at)
    whole = [late(seed=50).all(), given, given, late(seed=70).all()]
    torch.testing.assert_close(found, torch.stack([x[own] for x, own in zip(whole, at, strict=True)]))


def test_one_table_serves_a_whole_stack() -> None:
    at = torch.randperm(100, generator=draw(0)).view(4, 25)
    table = late()
    torch.testing.assert_close(vmap(lambda own: rows(table, placed(table, own)))(at), late().all()[at])


@pytest.mark.parametrize(("axes", "is_worthwhile"), [(1, True), (WIDTH, False)])
def test_making_rows_late_is_worthwhile_where_little_is_kept_for_it(axes: int, is_worthwhile: bool) -> None:
    assert late(axes=axes).is_worthwhile is is_worthwhile
