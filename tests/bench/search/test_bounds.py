"""A best value at an end of its range: what counts as one, what is a hard bound, and the wider range."""

from __future__ import annotations

from typing import Any

import pytest

from bench.search.bounds import Limits, at_bound, field_limits, wider, with_ranges
from bench.search.space import SearchSpace
from search_spaces.model import Distribution

LR = "optimiser.lr"


def space(key: str = LR, default: Any = 0.01, **distribution: list[Any]) -> SearchSpace:
    return SearchSpace("wide", {key: Distribution.model_validate(distribution)}, {key: default})


@pytest.mark.parametrize(
    ("value", "end"),
    [
        (0.1, "upper"),
        (10 ** (-4 + 3 * 0.951), "upper"),
        (10 ** (-4 + 3 * 0.949), None),
        (0.01, None),
        (10 ** (-4 + 3 * 0.051), None),
        (10 ** (-4 + 3 * 0.049), "lower"),
        (0.0001, "lower"),
        (0.5, "upper"),
    ],
)
def test_a_logarithmic_range_has_its_margins_on_a_logarithmic_scale(value: float, end: str | None) -> None:
    found = at_bound(space(log_uniform=[0.0001, 0.1]), "fedavg", {LR: value})
    assert found == ({LR: end} if end else {})


@pytest.mark.parametrize(("value", "end"), [(0.9, None), (2.91, "upper"), (2.84, None), (1.04, "lower")])
def test_a_linear_range_has_its_margins_on_a_linear_scale(value: float, end: str | None) -> None:
    low = 1.0 if value > 1 else 0.0
    found = at_bound(space(uniform=[low, 3.0]), "fedavg", {LR: value})
    assert found == ({LR: end} if end else {})


def test_of_whole_numbers_only_the_ends_count() -> None:
    whole = space(int=[1, 100])
    assert [at_bound(whole, "fedavg", {LR: value}) for value in (1, 2, 99, 100)] == [
        {LR: "lower"},
        {},
        {},
        {LR: "upper"},
    ]


@pytest.mark.parametrize(
    ("values", "value", "end"),
    [
        ([0.1, 0.01, 1.0], 0.01, "lower"),
        ([0.1, 0.01, 1.0], 0.1, None),
        ([0.1, 0.01, 1.0], 1.0, "upper"),
        ([0.1, 1.0], 1.0, None),
        (["a", "b", "c"], "c", None),
        ([False, True, 2], 2, None),
    ],
)
def test_of_a_list_the_least_and_the_greatest_of_three_numbers_count(
    values: list[Any], value: Any, end: str | None
) -> None:
    assert at_bound(space(choice=values), "fedavg", {LR: value}) == ({LR: end} if end else {})


def test_the_default_is_judged_where_it_is_the_best() -> None:
    assert at_bound(space(default=0.1, log_uniform=[0.0001, 0.1]), "fedavg", {}) == {LR: "upper"}


@pytest.mark.parametrize(
    ("method", "key", "limits"),
    [
        ("fedprox", "mu", Limits(lower=0)),
        ("fedavg", LR, Limits(lower=0, above=True)),
        ("fedavg", "optimiser.momentum", Limits(lower=0, upper=1, below=True)),
        ("ggeur+fedprox", "inner.mu", Limits(lower=0)),
    ],
)
def test_the_limits_of_a_field_are_found(method: str, key: str, limits: Limits) -> None:
    assert field_limits(method, key) == limits


def test_a_value_that_cannot_go_further_is_not_marked() -> None:
    assert at_bound(space("mu", uniform=[0.0, 1.0]), "fedprox", {"mu": 0.0}) == {}
    assert at_bound(space("mu", uniform=[0.0, 1.0]), "fedprox", {"mu": 1.0}) == {"mu": "upper"}


@pytest.mark.parametrize(
    ("key", "distribution", "end", "expected"),
    [
        (LR, {"log_uniform": [0.0001, 0.1]}, "upper", [0.0001, 1.0]),
        (LR, {"log_uniform": [0.0001, 0.1]}, "lower", [0.00001, 0.1]),
        ("mu", {"uniform": [1.0, 3.0]}, "upper", [1.0, 5.0]),
        ("mu", {"uniform": [1.0, 3.0]}, "lower", [0.0, 3.0]),
        ("mu", {"int": [2, 5]}, "upper", [2, 8]),
        ("mu", {"int": [2, 5]}, "lower", [0, 5]),
        ("optimiser.momentum", {"uniform": [0.0, 0.9]}, "upper", [0.0, 0.999]),
    ],
)
def test_a_range_grows_by_a_decade_or_its_width_up_to_the_limit_of_the_field(
    key: str, distribution: dict[str, list[Any]], end: Any, expected: list[float]
) -> None:
    before = space(key, **distribution)
    found = wider(before, "fedprox", {key: end})
    assert found == {key: pytest.approx(expected)}
    after = with_ranges(before, found)
    assert list(after.domains[key].values) == found[key]
    assert (after.default, after.digest != before.digest) == (before.default, True)


def test_a_list_of_values_is_not_made_longer() -> None:
    assert wider(space(choice=[0.1, 0.2, 0.3]), "fedavg", {LR: "upper"}) == {}
