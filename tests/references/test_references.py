"""Every method agrees with a plain-PyTorch implementation that was written without a look at it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from bench.engine.clients.base import Host
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.suite.methods import METHODS
from tests.kit.contract import wrapped
from tests.references.harness import (
    differences,
    expected_rounds,
    given_of,
    number_of_cases,
    participations,
    problem_of,
    reference_of,
    rounds_of,
    run_reference,
)

NAMES = (*METHODS.names(), *wrapped())

COMPARISONS = [
    pytest.param(name, position, participation, kind, marks=pytest.mark.xdist_group(name))
    for name in NAMES
    for position in range(number_of_cases(name))
    for participation in participations(name, position)
    for kind in ((LoopHost, StackedHost) if position == 0 else (StackedHost,))
]
"""A method's first case runs with both executors; further ones, which show options, are stacked."""


@pytest.mark.parametrize(("name", "position", "participation", "kind"), COMPARISONS)
def test_four_rounds_agree_with_the_reference(
    name: str, position: int, participation: float, kind: type[Host]
) -> None:
    reference = reference_of(name)
    assert reference is not None, f"{name} has no reference: see tests/references/__init__.py"
    case = reference.cases[position]
    with default_dtype(case.dtype):
        problem = problem_of(name, case, participation)
        if problem.task.has_batch_norm:  # which cannot be stacked
            kind = LoopHost
        expected = expected_rounds(name, position, participation)
        for number, ours in rounds_of(problem, kind, participation):
            assert differences(ours, expected[number - 1], case.tolerance) == [], f"round {number}"


@pytest.mark.parametrize(
    ("name", "coefficient"),
    [
        ("fedprox", "mu"),
        ("moon", "temperature"),
        ("fedlsa", "alpha"),
        ("fedadam", "beta1"),
        ("fedsdg", "lam1"),
    ],
)
def test_a_coefficient_that_is_one_percent_off_shows(name: str, coefficient: str) -> None:
    case = reference_of(name).cases[0]
    with default_dtype(case.dtype):
        problem = problem_of(name, case)
        told = given_of(problem, case, participation=1.0)
        off = {**told.settings, coefficient: 1.01 * told.settings[coefficient]}
        expected = run_reference(name, problem, replace(told, settings=off))
        *_, (_, ours) = rounds_of(problem, LoopHost, participation=1.0)
        assert differences(ours, expected[-1], tolerance=1e-5)


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
