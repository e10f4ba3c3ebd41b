"""Every float hyperparameter of every shipped method, stacked with another value of it, and alone."""

from __future__ import annotations

import pytest

from bench.contract.method_under_test import MethodUnderTest
from bench.contract.rules.sweeps import fault, with_other_value
from bench.engine.stacking.differing_numbers import numbers_of
from bench.suite.methods import METHODS
from methods.core.hyperparameters import Role, role_of
from tests.kit.contract import every_method, make_method, quick, tiny_problem


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # in tiny transformers, which never stack
@every_method
def test_each_number_may_be_a_tensor_unless_it_is_declared_otherwise(name: str) -> None:
    problem = tiny_problem(make_method(name))
    if problem.task.has_batch_norm:
        pytest.skip("batch norm cannot be stacked")
    subject = MethodUnderTest(METHODS.load(name), quick(name))
    for path in numbers_of(problem.method):
        changed = with_other_value(problem, path)
        assert changed is not None, f"{'.'.join(path)} takes no other value"
        assert fault(subject, [problem, changed]) == "", ".".join(path)


def test_few_floats_split_a_stack() -> None:
    """Those that decide a count or a shape, in methods as they are without a wrapper around them."""
    names = [*METHODS.names(), "compressed+fedavg", "robust+fedavg"]
    branches = {
        f"{name}.{field}"
        for name in names
        for field, info in METHODS.load(name).model_fields.items()
        if role_of(info) is Role.BRANCH
    }
    assert branches == {"fedga.held_out", "compressed+fedavg.share", "robust+fedavg.tolerated"}
