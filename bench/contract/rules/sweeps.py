"""Cells that are computed together come to the same results as alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from pydantic import BaseModel, ValidationError

from bench.contract.nests import gaps, some
from bench.contract.rule import Rule
from bench.contract.runs import SOME, prepared, run, standing
from bench.contract.stage import PLAIN, SIZES
from bench.contract.subject import NotApplicableError, Subject, raised
from bench.engine.evaluation import Judging
from bench.engine.federation import Federation
from bench.engine.hosts.groups import HostGroups
from bench.engine.hosts.judging import joint_judging
from bench.engine.hosts.stacked import StackedHost
from bench.engine.problem import Problem
from bench.engine.shared_preludes import SharedPreludes
from methods.base import FedAlgorithm, Task
from methods.core.optional import MakesSamples, SeparatesRounds

TOLERANCE = 1e-5
ROUNDS = 2
OF_SEEDS = {0: SIZES, 1: (8, 5, 11)}
"""Seed → samples per client."""
SMALLER = 0.8
"""What numbers are multiplied by to have other values of them."""


def _sweeps(subject: Subject) -> Iterator[str]:
    problem = subject.problem(optimiser=PLAIN)
    if problem.task.has_batch_norm:
        raise NotApplicableError("batch norm cannot be stacked")
    problems = [
        cell
        for seed, sizes in OF_SEEDS.items()
        for cell in two_settings(subject.problem(optimiser=PLAIN, seed=seed, sizes=sizes))
    ]
    found = list(
        _differences(subject, problems, "in local and in losses, numbers of the method may be tensors")
    )
    others = with_other_samples(problem.method, problem.task)
    if not found and others != problem.method:
        cells = [problem, replace(two_settings(problem)[1], method=others)]
        claim = "in_rounds says that some hyperparameters, in which they differ, make no difference to rounds"
        found = list(_differences(subject, cells, claim))
    yield from found


def _differences(subject: Subject, problems: list[Problem], hint: str) -> Iterator[str]:
    """What is otherwise in these cells together than alone; at most one sentence."""
    alone = [_standing(problem) for problem in problems]
    try:
        cells = _together(problems)
    except Exception as error:
        yield f"cells with other numbers or seeds cannot be computed together: {raised(subject, error)}"
        return
    together = [standing(federation, host) for host, federation in cells]
    for expected, found in zip(alone, together, strict=True):
        if missed := gaps(expected, found, TOLERANCE):
            yield (
                f"cells that are computed together differ from the same cells alone by up to "
                f"{max(missed.values()):.2g} in {some(list(missed))}: {hint}"
            )
            return
    if subject.method.has_global_model and not _judge_alike([federation for _, federation in cells]):
        yield (
            "models that are judged together predict other classes than alone: in predict, numbers of the "
            "method may be tensors"
        )


def _judge_alike(federations: list[Federation]) -> bool:
    """Whether the global models of several cells predict together what each does alone."""
    models = [Judging(each.problem, each.server, list(each.problem.test.values())) for each in federations]
    return all(
        not isinstance(found, Exception)
        and all(torch.equal(a.classes, b.classes) for a, b in zip(found, model.alone(), strict=True))
        for model, found in zip(models, joint_judging().to(models), strict=True)
    )


def two_settings(problem: Problem) -> list[Problem]:
    """The problem, and the same with other numbers of the method and a lower learning rate."""
    slower = replace(problem.task, optimiser=PLAIN.model_copy(update={"lr": SMALLER * PLAIN.lr}))
    return [problem, replace(problem, method=changed(problem.method), task=slower)]


def changed(method: FedAlgorithm) -> FedAlgorithm:
    """The same method with other numbers, as far as it takes them."""
    given = method.model_dump()
    for path, value in _numbers(method, ()):
        try:
            method = type(method).model_validate(_with(given, path, SMALLER * value))
        except ValidationError:
            continue
        given = _with(given, path, SMALLER * value)
    return method


def with_other_samples(method: FedAlgorithm, task: Task) -> FedAlgorithm:
    """The same method with other values of all that it says makes no difference to rounds."""
    if not isinstance(method, SeparatesRounds):
        return method
    kind, rounds = type(method), method.in_rounds()
    for path, value in _fields(method, ()):
        for other in _others(value):
            try:
                changed = kind.model_validate(_with(method.model_dump(), path, other))
                changed.check(task)
            except ValueError:
                continue
            anew = isinstance(changed, MakesSamples) and changed.resamples()  # for which a cell stays alone
            if isinstance(changed, SeparatesRounds) and changed.in_rounds() == rounds and not anew:
                method = changed
                break
    return method


def _fields(model: BaseModel, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All hyperparameters, those of methods inside too."""
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, FedAlgorithm):
            yield from _fields(value, (*path, name))
        else:
            yield (*path, name), value


def _others(value: Any) -> list[Any]:
    """Values that a hyperparameter might have instead of this one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [SMALLER * value or 1 - SMALLER]
    return [2] if value is None else []


def _numbers(model: BaseModel, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], float]]:
    return ((at, value) for at, value in _fields(model, path) if type(value) is float and value)


def _with(given: Mapping[str, Any], path: tuple[str, ...], value: float) -> dict[str, Any]:
    name, *rest = path
    return {**given, name: _with(given[name], tuple(rest), value) if rest else value}


def _standing(problem: Problem) -> dict[str, Any]:
    host = StackedHost(problem)
    return standing(run(problem, host, ROUNDS, SOME), host)


def _together(problems: list[Problem]) -> list[tuple[StackedHost, Federation]]:
    shared, groups = SharedPreludes(), HostGroups()
    hosts = [StackedHost(problem) for problem in problems]
    cells = [(host, prepared(host.problem, host, SOME, shared)) for host in hosts]
    for _ in range(ROUNDS):
        for error in groups.advance({host: federation.advancing() for host, federation in cells}).values():
            raise error
    return cells


SWEEPS = Rule(
    "sweeps",
    "Cells that differ in numbers, samples and seed come to the same results together as alone, up to 1e-5.",
    "Stacking",
    _sweeps,
)
