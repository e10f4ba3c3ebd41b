"""A client whose numbers become NaN or infinite is left out, and the others go on."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.contract.fixtures import with_infinite_inputs, with_only
from bench.contract.method_under_test import MethodUnderTest
from bench.contract.nests import differing, gaps, is_all_finite, some
from bench.contract.rule import Rule
from bench.contract.runs import resumed, run, standing
from bench.engine.clients.base import Host
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.federation import Federation


def _divergence(subject: MethodUnderTest) -> Iterator[str]:
    if subject.kind.one_round:
        yield from _before_round_1(subject)
        return
    problem = subject.problem()
    kinds: list[type[Host]] = [LoopHost] if problem.task.has_batch_norm else [LoopHost, StackedHost]
    for kind in kinds:
        with tempfile.TemporaryDirectory() as name:
            run(problem, LoopHost(problem), rounds=1, save_to=Path(name))
            found = list(_after_one_client_diverges(subject, kind, Path(name)))
        yield from found
        if found:
            return


def _after_one_client_diverges(subject: MethodUnderTest, kind: type[Host], folder: Path) -> Iterator[str]:
    problem = subject.problem()
    bad = max(problem.train) // 2
    others = [client for client in problem.train if client != bad]
    before = kind(problem)
    before.load(folder)
    host = kind(with_infinite_inputs(problem, bad))
    federation = resumed(host.problem, host, folder, rounds=1)
    server_before = federation.server
    record = federation.advance()
    if record["dropped"] != 1:
        yield (
            f"{record['dropped']} clients are left out of a round in which one has infinite inputs, instead "
            "of 1: do not replace NaN by other numbers"
        )
        return
    if not is_all_finite(standing(federation, host)):
        yield "a client that diverges leaves NaN or infinite numbers in a state"
    if changed := differing(host.state(bad), before.state(bad)):
        yield f"a client that diverges does not keep its previous private state ({some(changed)})"
    if not others:
        if changed := differing(federation.server, server_before):
            yield f"a round without any sound reply changes the server's state ({some(changed)})"
        return
    fewer_host = kind(with_only(problem, others))
    fewer = resumed(fewer_host.problem, fewer_host, folder, rounds=1)
    fewer.advance()
    tolerance = 0.0 if kind is LoopHost else 1e-6
    pairs = [(federation.server, fewer.server)]
    pairs += [(host.state(client), fewer_host.state(client)) for client in others]
    if changed := [name for one, other in pairs for name in gaps(one, other, tolerance)]:
        yield f"the others do not get what they would without the client that diverges ({some(changed)})"


def _before_round_1(subject: MethodUnderTest) -> Iterator[str]:
    """The same for a method that is done before round 1, where clients are computed one by one."""
    problem = subject.problem()
    bad = max(problem.train) // 2
    infinite = with_infinite_inputs(problem, bad)
    federation = Federation(infinite, host := LoopHost(infinite))
    if not federation.prelude()["dropped"]:
        yield "a client with infinite inputs is not left out before round 1: do not replace NaN"
        return
    if not is_all_finite(standing(federation, host)):
        yield "a client that diverges leaves NaN or infinite numbers in a state"
    others = with_only(problem, [client for client in problem.train if client != bad])
    fewer = Federation(others, LoopHost(others))
    fewer.prelude()
    if changed := differing(federation.server, fewer.server):
        yield f"the others do not get what they would without the client that diverges ({some(changed)})"


DIVERGENCE = Rule(
    "divergence",
    "A client that diverges is left out and counted and keeps its state; the others are not affected.",
    "Divergence",
    _divergence,
)
