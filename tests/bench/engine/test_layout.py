"""Which cells one call computes."""

from __future__ import annotations

from typing import Any

from bench.engine.stacking.layout import Member, layout


def cell(mu: float = 0.1, samples: int = 0, **others: Any) -> Member:
    return Member(**{"kind": "fedprox", "numbers": {("mu",): mu}, "samples": samples, **others})


def test_cells_with_the_same_samples_share_batches() -> None:
    assert layout([cell(0.1), cell(0.2), cell(0.3)]) == [[[0, 1, 2]]]


def test_a_cell_by_itself_is_a_call() -> None:
    assert layout([cell()]) == [[[0]]]
    assert layout([]) == []


def test_cells_of_other_kinds_are_computed_apart() -> None:
    cells = [cell(0.1), cell(0.1, kind="fedavg"), cell(0.2), cell(0.2, kind="fedavg")]
    assert layout(cells) == [[[0, 2]], [[1, 3]]]


def test_kinds_need_no_hash() -> None:
    kinds = [({"copies": [1]}, 0), ({"copies": [2]}, 0), ({"copies": [1]}, 0)]
    assert layout([cell(kind=kind) for kind in kinds]) == [[[0, 2]], [[1]]]


def test_sets_with_the_same_numbers_form_a_table() -> None:
    cells = [cell(mu, samples) for samples in (7, 8) for mu in (0.1, 0.2)]
    assert layout(cells) == [[[0, 1], [2, 3]]]
    in_turn = [cell(mu, samples) for mu in (0.1, 0.2) for samples in (7, 8)]
    assert layout(in_turn) == [[[0, 2], [1, 3]]]


def test_few_cells_per_set_have_rows_of_their_own() -> None:
    assert layout([cell(0.1, 0), cell(0.2, 1), cell(0.3, 2)]) == [[[0], [1], [2]]]
    assert layout([cell(0.1, 0), cell(0.2, 0), cell(0.3, 1)]) == [[[0], [1], [2]]]


def test_many_cells_of_uneven_sets_are_computed_set_by_set() -> None:
    cells = [cell(0.1, 0), cell(0.2, 0), cell(0.3, 0), cell(0.1, 1)]
    assert layout(cells) == [[[0, 1, 2]], [[3]]]


def test_cells_that_would_be_mostly_padding_stay_apart() -> None:
    cells = [cell(samples=place, steps=steps) for place, steps in enumerate((10, 30, 15, 45, 16))]
    assert layout(cells) == [[[0], [2]], [[1], [3]], [[4]]]


def test_a_cell_fits_all_others_of_its_call() -> None:
    cells = [cell(samples=place, steps=steps) for place, steps in enumerate((10, 14, 20))]
    assert layout(cells) == [[[0], [1]], [[2]]]


def test_samples_that_are_not_kept_stay_with_their_cells() -> None:
    cells = [cell(0.1, 0, steps=None), cell(0.2, 1, steps=None), cell(0.3, 0, steps=None), cell(0.1, 2)]
    assert layout(cells) == [[[0, 2]], [[1]], [[3]]]


def test_without_room_for_copies_sets_are_computed_one_after_the_other() -> None:
    cells = [cell(mu, samples, copied=100) for samples in (0, 1) for mu in (0.1, 0.2)]
    assert layout(cells, room=200) == [[[0, 1], [2, 3]]]
    assert layout(cells, room=199) == [[[0, 1]], [[2, 3]]]
    rows = [cell(0.1, 0, copied=100), cell(0.2, 1, copied=100)]
    assert layout(rows, room=150) == [[[0]], [[1]]]


def test_cells_of_one_set_need_no_copy() -> None:
    assert layout([cell(0.1, copied=100), cell(0.2, copied=100)], room=0) == [[[0, 1]]]
