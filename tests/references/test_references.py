"""Every method agrees with a plain-PyTorch implementation that somebody else wrote from its paper."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from bench.engine.hosts.base import Host
from bench.engine.hosts.loop import LoopHost
from bench.engine.hosts.stacked import StackedHost
from bench.suite.methods import METHODS
from tests.kit.contract import wrapped
from tests.references.harness import (
    differences,
    expected_rounds,
    number_of_cases,
    problem_of,
    reference_of,
    rounds_of,
)

NAMES = (*METHODS.names(), *wrapped())


@pytest.fixture(autouse=True)
def in_float64() -> Iterator[None]:
    """So that a difference is a difference of the methods, not of rounding."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.mark.parametrize(
    ("name", "position"),
    [
        pytest.param(name, position, marks=pytest.mark.xdist_group(name))
        for name in NAMES
        for position in range(number_of_cases(name))
    ],
)
@pytest.mark.parametrize("participation", [1.0, 0.5])
@pytest.mark.parametrize("kind", [LoopHost, StackedHost])
def test_three_rounds_agree_with_the_reference(
    name: str, position: int, participation: float, kind: type[Host]
) -> None:
    reference = reference_of(name)
    assert reference is not None, f"{name} has no reference: write tests/references/methods/{name}.py"
    case = reference.cases[position]
    problem = problem_of(name, case)
    if kind is StackedHost and problem.task.has_batch_norm:
        pytest.skip("batch norm cannot be stacked")
    expected = expected_rounds(name, position, participation)
    for number, ours in rounds_of(problem, kind, participation):
        assert differences(ours, expected[number - 1], case.tolerance) == [], f"round {number}"
