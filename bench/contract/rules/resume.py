"""A run that is saved and loaded goes on as if it had not stopped."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.contract.method_under_test import MethodUnderTest, raised
from bench.contract.nests import differing, some
from bench.contract.rule import Rule
from bench.contract.runs import SOME, SplitHosts, resumed, run, standing
from bench.engine.clients.base import Host
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.federation import Federation
from bench.engine.problem import Problem

SAVED_AFTER = 2


def _resume(subject: MethodUnderTest) -> Iterator[str]:
    problem = subject.problem()
    several = [] if subject.kind.pools_data else [lambda new: SplitHosts(new, subject.fresh)]
    executors: list[tuple[type[Host], list[Callable[[Problem], Any]]]] = [(LoopHost, [LoopHost, *several])]
    if not problem.task.has_batch_norm:
        executors.append((StackedHost, [StackedHost]))
    for kind, continued_by in executors:
        with tempfile.TemporaryDirectory() as name:
            host = kind(problem)
            try:
                federation = run(problem, host, SAVED_AFTER, SOME, save_to=Path(name))
            except Exception as error:
                if kind is StackedHost:
                    return  # another rule says so
                yield f"its states cannot be saved: {raised(subject, error)}"
                return
            expected = _ending(federation, host)
            for make in continued_by:
                new = subject.problem_of_its_own()
                hosts = make(new)
                try:
                    again = resumed(new, hosts, Path(name), SAVED_AFTER, SOME)
                except Exception as error:
                    yield f"its saved states cannot be loaded: {raised(subject, error)}"
                    return
                yield from _differences(expected, _ending(again, hosts))


def _ending(federation: Federation, host: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """What a federation comes to in one more round: the record, the states and the accuracies."""
    record = federation.advance()
    return record, standing(federation, host), federation.evaluate(personal=True)


def _differences(
    expected: tuple[dict[str, Any], dict[str, Any], dict[str, Any]],
    found: tuple[dict[str, Any], dict[str, Any], dict[str, Any]],
) -> Iterator[str]:
    if changed := differing(expected[1], found[1]):
        yield (
            f"a resumed run comes to other states ({some(changed)}): something that lasts is kept outside of "
            "the server's and the clients' states"
        )
    elif (expected[0], expected[2]) != (found[0], found[2]):
        yield "a resumed run leaves another record: predict or observe uses something outside of the states"


RESUME = Rule(
    "resume",
    "A run that is saved and loaded between rounds goes on with the same states and records.",
    "Resume",
    _resume,
)
