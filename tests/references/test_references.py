"""Every method agrees with a plain-PyTorch implementation that was written without a look at it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

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
    given_of,
    number_of_cases,
    problem_of,
    reference_of,
    rounds_of,
    run_reference,
)

NAMES = (*METHODS.names(), *wrapped())
WAITING = {
    *("fpl", "fedtgp", "fedtgp_avg", "fedga", "fedsr", "fed3r", "ccvr", "fedpft", "feddecorr", "fedetf"),
    *("fedlc", "fedrs", "fednova", "fedsam", "fedexp", "fedplvm", "fedbn", "fedper", "lg_fedavg", "apfl"),
    *("pfedme", "per_fedavg", "fedrod", "fedala", "fedpac", "ffa_lora", "fedsa_lora", "feddpa", "fedalt"),
    *("flexlora", "fedex_lora", "promptfl", "fedpgp", "dp", "robust", "compressed", "fedheal", "fedrdn"),
}
"""Methods and wrappers that are new and whose references are being written."""

# The first case of a method runs with all clients and with half of them, further ones with half alone.
COMPARISONS = [
    pytest.param(name, position, participation, marks=pytest.mark.xdist_group(name))
    for name in NAMES
    for position in range(number_of_cases(name))
    for participation in ((1.0, 0.5) if position == 0 else (0.5,))
]


@pytest.mark.parametrize(("name", "position", "participation"), COMPARISONS)
@pytest.mark.parametrize("kind", [LoopHost, StackedHost])
def test_three_rounds_agree_with_the_reference(
    name: str, position: int, participation: float, kind: type[Host]
) -> None:
    reference = reference_of(name)
    if reference is None and name.partition("+")[0] in WAITING:
        pytest.skip("its reference is being written")
    assert reference is not None, f"{name} has no reference: see tests/references/__init__.py"
    case = reference.cases[position]
    with default_dtype(case.dtype):
        problem = problem_of(name, case)
        if kind is StackedHost and problem.task.has_batch_norm:
            pytest.skip("batch norm cannot be stacked")
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


def test_none_that_has_a_reference_is_waiting_for_one() -> None:
    names = {name.partition("+")[0]: name for name in NAMES}
    assert [name for name in WAITING if name in names and reference_of(names[name])] == []


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
