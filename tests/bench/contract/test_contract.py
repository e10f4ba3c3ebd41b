"""Every registered method keeps every rule of the contract. A new method is tested without a line here."""

from __future__ import annotations

from functools import lru_cache

import pytest

from bench.contract.method_under_test import MethodUnderTest
from bench.contract.rule import Rule
from bench.contract.rules import RULES
from bench.suite.methods import METHODS
from tests.kit.contract import every_method


@lru_cache(maxsize=1)
def subject(name: str) -> MethodUnderTest:
    """Made once for all rules: the tests of a method follow each other in one process."""
    return MethodUnderTest(METHODS.load(name))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name.replace(" ", "_"))
@every_method
def test_every_method_keeps_every_rule(name: str, rule: Rule) -> None:
    verdict = rule.applied_to(subject(name))
    assert not verdict.findings, str(verdict)
    if verdict.not_applied:
        pytest.skip(verdict.not_applied)
