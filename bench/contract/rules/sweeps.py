"""Cells that are computed together come to the same results as alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from pydantic import BaseModel
from torch import Tensor

from bench.contract.fixtures import PLAIN, SIZES
from bench.contract.method_under_test import MethodUnderTest, NotApplicableError, raised
from bench.contract.nests import gaps, some
from bench.contract.rule import Rule
from bench.contract.runs import SOME, prepared, run, standing
from bench.engine.asked import Round, answered
from bench.engine.clients.base import Hosts
from bench.engine.clients.stacked import StackedHost
from bench.engine.federation import Federation
from bench.engine.problem import Problem
from bench.engine.shared_preludes import SharedPreludes
from bench.engine.stacking.differing_numbers import numbers_of, sample_settings
from bench.engine.stacking.joint import FUNCTIONS, JointRounds, StackError
from methods.base import FedAlgorithm
from methods.core.optional import MakesSamples

TOLERANCE = 1e-5
ROUNDS = 2
OF_SEEDS = {0: SIZES, 1: (8, 5, 11)}
"""Seed → samples per client."""
SMALLER = 0.8
"""What numbers are multiplied by to have other values of them."""
REMEDIES = {
    "local": "the cells differ in nothing but the learning rate, which local may not take for a plain number",
    "aggregate": "set stacks_server = False in the class, and it is called cell by cell",
    "predict": "set stacks_predictions = False in the class, and it is called cell by cell",
}
"""Function of a method → what helps if it cannot be computed for several cells whatever they differ in."""


def _sweeps(subject: MethodUnderTest) -> Iterator[str]:
    problem = subject.problem(optimiser=PLAIN)
    if problem.task.has_batch_norm:
        raise NotApplicableError("batch norm cannot be stacked")
    first, second = (subject.problem(optimiser=PLAIN, seed=seed, sizes=of) for seed, of in OF_SEEDS.items())
    # The same frozen weights, as those of a pretrained model: otherwise the seeds are computed apart.
    second = replace(second, task=replace(second.task, model=first.task.model), test=first.test)
    other_samples = with_other_samples(problem)
    cells = [*two_settings(first), *two_settings(second)]
    made = [] if other_samples is problem else [problem, other_samples]
    if fault(subject, cells) or (made and fault(subject, made)):
        yield _diagnosis(subject, problem, [first, second], made)


def _diagnosis(subject: MethodUnderTest, problem: Problem, seeds: list[Problem], made: list[Problem]) -> str:
    """What to declare, found by comparing cells that differ in one thing only."""
    slower = replace(problem, task=two_settings(problem)[1].task)
    for function in FUNCTIONS:
        if found := fault(subject, [problem, slower], stacked=["local", function]):
            return f"{function} cannot be computed for several cells at once ({found}): {REMEDIES[function]}"
    for path in numbers_of(problem.method):
        if (changed := with_other_value(problem, path)) and (found := fault(subject, [problem, changed])):
            return f"{'.'.join(path)} {_remedy_of_number(subject, problem, changed, found)}"
    for path in sample_settings(problem.method):
        if (changed := with_other_value(problem, path)) and (found := fault(subject, [problem, changed])):
            return (
                f"{'.'.join(path)} is declared with Role.SAMPLES, but rounds depend on it, or samples depend "
                f"on more than Role.SAMPLES and sample_state say ({found})"
            )
    if found := fault(subject, seeds):
        return f"cells of different seeds cannot be computed together ({found}): set reads_seed = True"
    found = fault(subject, [*two_settings(seeds[0]), *two_settings(seeds[1])]) or fault(subject, made)
    return f"cells that are computed together differ from the same cells alone ({found})"


def _remedy_of_number(subject: MethodUnderTest, problem: Problem, changed: Problem, found: str) -> str:
    if not fault(subject, [problem, changed], share_preludes=False):
        return (
            "makes a difference to an exchange before round 1, whose objects are equal (==) whatever its "
            f"value ({found}): make it part of the comparison"
        )
    if isinstance(problem.method, MakesSamples) and not _make_the_same(problem, changed):
        return (
            f"makes a difference to samples ({found}): declare it Annotated[float, Role.SAMPLES], or "
            "Role.BRANCH if rounds depend on it, too"
        )
    return (
        f"cannot be a tensor with a value per cell ({found}): use is_off(...) or torch.where, or declare it "
        "Annotated[float, Role.BRANCH]"
    )


def fault(
    subject: MethodUnderTest,
    problems: Sequence[Problem],
    stacked: Sequence[str] = FUNCTIONS,
    share_preludes: bool = True,
) -> str:
    """What is different in these cells together than alone, or what computing them raises; empty: nothing."""
    alone = [_alone(problem) for problem in problems]
    shared = SharedPreludes() if share_preludes else None
    joint, hosts = JointRounds(stacked), [StackedHost(problem) for problem in problems]
    cells = {host: prepared(host.problem, host, SOME, shared) for host in hosts}
    predictions: dict[Hosts, list[Tensor]] = {}
    for number in range(ROUNDS):
        last = number == ROUNDS - 1 and subject.method.has_global_model
        rounds: dict[Hosts, Round] = {
            host: _round(host, each, predictions if last else None) for host, each in cells.items()
        }
        for error in joint.advance(rounds).values():
            cause = error.__cause__ if isinstance(error, StackError) else error
            return raised(subject, cause if isinstance(cause, Exception) else error)
    for (expected, classes), (host, federation) in zip(alone, cells.items(), strict=True):
        if missed := gaps(expected, standing(federation, host), TOLERANCE):
            return f"they differ by up to {max(missed.values()):.2g} in {some(list(missed))}"
        for mine, theirs in zip(classes, predictions.get(host, classes), strict=True):
            if not torch.equal(mine, theirs):
                return "they predict other classes than alone"
    return ""


def _round(host: Hosts, federation: Federation, predictions: dict[Hosts, list[Tensor]] | None) -> Round:
    """A round, and then what the global model predicts, where that is asked for."""
    yield from federation.advancing()
    if predictions is not None:
        predictions[host] = yield from _predicting(federation)


def _predicting(federation: Federation) -> Round:
    """The classes that the global model predicts, by test set."""
    found = yield federation.predicting(list(federation.problem.test.values()))
    return [classes for classes, _ in found]


def _alone(problem: Problem) -> tuple[dict[str, Any], list[Tensor]]:
    host = StackedHost(problem)
    federation = run(problem, host, ROUNDS, SOME)
    classes = answered(_predicting(federation)) if problem.method.has_global_model else []
    return standing(federation, host), classes


def _make_the_same(one: Problem, other: Problem) -> bool:
    """Whether the first client trains on the same samples in both."""
    hosts = [StackedHost(problem) for problem in (one, other)]
    shared = SharedPreludes()
    for host in hosts:
        prepared(host.problem, host, SOME, shared)
    client = next(iter(one.train))
    return all(torch.equal(a, b) for a, b in zip(*(host.made(client, 0) for host in hosts), strict=True))


def two_settings(problem: Problem) -> list[Problem]:
    """The problem, and the same with other numbers of the method and a lower learning rate."""
    slower = replace(problem.task, optimiser=PLAIN.model_copy(update={"lr": SMALLER * PLAIN.lr}))
    changed = problem
    for path in numbers_of(problem.method):
        changed = with_other_value(changed, path) or changed
    return [problem, replace(changed, task=slower)]


def with_other_samples(problem: Problem) -> Problem:
    """The same with other values of all that rounds do not depend on, as far as the method says."""
    for path in sample_settings(problem.method):
        problem = with_other_value(problem, path) or problem
    return problem


def with_other_value(problem: Problem, path: Sequence[str]) -> Problem | None:
    """The same with another value of one hyperparameter; None where the method takes no other."""
    method = problem.method
    for other in _others(_value(method, path)):
        try:
            changed: FedAlgorithm = type(method).model_validate(_with(method.model_dump(), path, other))
            changed.check(problem.task)
        except ValueError:
            continue
        if not (isinstance(changed, MakesSamples) and changed.resamples()):  # for which a cell stays alone
            return replace(problem, method=changed)
    return None


def _value(model: BaseModel, path: Sequence[str]) -> Any:
    name, *inside = path
    return _value(getattr(model, name), inside) if inside else getattr(model, name)


def _others(value: Any) -> list[Any]:
    """Values that a hyperparameter might have instead of this one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [SMALLER * value or 1 - SMALLER]
    return [2] if value is None else []


def _with(given: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    name, *inside = path
    return {**given, name: _with(given[name], inside, value) if inside else value}


SWEEPS = Rule(
    "sweeps",
    "Cells that differ in numbers, samples and seed come to the same results together as alone, up to 1e-5.",
    "Stacking",
    _sweeps,
)
