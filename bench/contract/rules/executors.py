"""Every executor comes to the same results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bench.config.schedules import Cosine
from bench.config.training import Augmentation
from bench.contract.fixtures import ADAM, BATCH, MOMENTUM, PLAIN, refusal_of
from bench.contract.method_under_test import ROUNDS, MethodUnderTest, NotApplicableError, raised
from bench.contract.models import MODELS
from bench.contract.nests import differing, gaps, some
from bench.contract.rule import Rule
from bench.contract.runs import SOME, SplitHosts, run, standing
from bench.engine.clients.debug import DebugHost
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.federation import Federation
from bench.engine.preparation import Recipe
from bench.engine.problem import Problem
from methods.core.optimisers import Optimiser

TOLERANCE = 1e-5
FURTHER: tuple[tuple[str, Optimiser], ...] = (
    ("mlp", PLAIN),
    ("cnn", MOMENTUM),
    ("head", PLAIN),
    ("vit", ADAM),
)
"""Where the method accepts them, beside the first model that it accepts with all three optimisers."""


def _stacked(subject: MethodUnderTest) -> Iterator[str]:
    chosen = subject.model or ""
    if subject.problem().task.has_batch_norm:
        raise NotApplicableError("batch norm cannot be stacked")
    cases = dict.fromkeys([*((chosen, each) for each in (PLAIN, MOMENTUM, ADAM)), *FURTHER])
    for model, optimiser in cases:
        if model not in MODELS or refusal_of(subject.method, model, optimiser):
            continue
        problem = subject.problem(model, optimiser=optimiser)
        if optimiser == MOMENTUM:
            problem = as_people_train(problem)
        loop = LoopHost(problem)
        expected = standing(run(problem, loop, ROUNDS, SOME), loop)
        try:
            stacked = StackedHost(problem)
            found = standing(run(problem, stacked, ROUNDS, SOME), stacked)
        except Exception as error:
            hint = (
                " (draw random numbers with batch.uniform or batch.normal)" if "random" in str(error) else ""
            )
            yield f"local cannot be stacked: on the model '{model}' it raises {raised(subject, error)}{hint}"
            return
        if missed := gaps(expected, found, TOLERANCE):
            cause = (
                ""
                if _differs_without_padding(subject, model, optimiser)
                else ("; without padding they agree, so padded samples or steps count")
            )
            yield (
                f"stacked clients differ from clients in order by up to {max(missed.values()):.2g} in "
                f"{some(list(missed))} (model '{model}', {optimiser.name}){cause}"
            )
            return


def as_people_train(problem: Problem) -> Problem:
    """The same problem with the options that a suite may add to the training, and with recorded losses."""
    return replace(
        problem,
        task=replace(problem.task, records_losses=True),
        schedule=Cosine(warmup=1, final=0.1),
        rounds=ROUNDS,
        recipe=Recipe(Augmentation(mixup=1.0), smoothing=0.1),
    )


def _differs_without_padding(subject: MethodUnderTest, model: str, optimiser: Optimiser) -> bool:
    problem = subject.problem(model, optimiser=optimiser, sizes=(2 * BATCH,) * 3)
    loop, stacked = LoopHost(problem), StackedHost(problem)
    expected = standing(run(problem, loop, ROUNDS, SOME), loop)
    return bool(gaps(expected, standing(run(problem, stacked, ROUNDS, SOME), stacked), TOLERANCE))


def _hosts(subject: MethodUnderTest) -> Iterator[str]:
    subject.require_several_clients()
    expected = subject.course
    problem = subject.problem_of_its_own()
    hosts = SplitHosts(problem, subject.fresh)
    federation, records = _advanced(problem, hosts)
    if changed := differing(expected.standing, standing(federation, hosts)):
        yield (
            f"clients on two hosts come to other results than on one ({some(changed)}): something passes "
            "between clients or to the server outside of the messages"
        )
    elif records != expected.records:
        yield "clients on two hosts leave other records than on one: observe depends on something outside"
    else:
        yield from _debugged(subject)


def _debugged(subject: MethodUnderTest) -> Iterator[str]:
    problem = subject.problem_of_its_own()
    host = DebugHost(problem)
    try:
        found = standing(run(problem, host, ROUNDS, SOME), host)
    except Exception as error:
        yield f"the executor debug stops where others do not: {raised(subject, error)}"
        return
    if changed := differing(subject.course.standing, found):
        yield f"the executor debug comes to other results than loop ({some(changed)})"


def _advanced(problem: Problem, hosts: SplitHosts) -> tuple[Federation, list[dict[str, object]]]:
    federation = run(problem, hosts, rounds=0, participation=SOME)
    return federation, [federation.advance() for _ in range(ROUNDS)]


EXECUTORS = Rule(
    "stacking",
    "Clients that are stacked come to the same results as one after the other, up to 1e-5.",
    "Stacking",
    _stacked,
)
HOSTS = Rule(
    "hosts",
    "Clients that are spread over hosts (executor ray) or debugged come to the same results bit for bit.",
    "Purity",
    _hosts,
)
