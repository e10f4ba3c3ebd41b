"""What a round of a method does: it learns, sends tensors, and starts from what the server sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from bench.contract.fixtures import CLASSES, SIZES, VANISHING, with_only
from bench.contract.method_under_test import MethodUnderTest, NotApplicableError
from bench.contract.nests import differing, flat, foreign, gaps, is_all_finite, noisy, shapes, some
from bench.contract.rule import Rule
from bench.contract.runs import WatchedHost, last_phase, predictions, run, served_model, with_served_model
from bench.engine.clients.loop import LoopHost


def _rounds(subject: MethodUnderTest) -> Iterator[str]:
    if subject.model is None:
        sentences = "; ".join(f"{model}: {sentence}" for model, sentence in subject.refused.items())
        yield f"check refuses every small model that the contract tries ({sentences})"
        return
    try:
        course, problem = subject.course, subject.course.problem
    except (TypeError, ValueError) as error:
        if "unpack" not in str(error):
            raise
        yield "local does not return two things: the reply, and the entries of the private state that changed"
        return
    client = course.rounds_work[0].client
    start = 0 if subject.kind.one_round else 1
    before = predictions(problem, course.server_copies[start], course.rounds_work[0].copies["state"])
    after = predictions(problem, course.server_copies[2], course.rounds_work[0].copies["kept"])
    wanted = (sum(len(each.y) for each in problem.test.values()), CLASSES)
    if tuple(after.shape) != wanted:
        yield f"predict returns the shape {tuple(after.shape)} for scores of samples × classes {wanted}"
    elif not bool(torch.isfinite(after).all()):
        yield "predict returns scores that are NaN or infinite after one round"
    elif torch.equal(before, after):
        yield f"a round does not change what the method predicts (client {client} took part)"
    for record in course.records:
        if record["dropped"]:
            yield (
                f"clients diverge in round {record['round']} on plain data: "
                f"{record['dropped']} of {record['clients']}"
            )
            return
        if wrong := _no_numbers(record.get("metrics", {})):
            yield f"observe returns something else than plain numbers ({some(wrong)}): use float(...)"
            return
    if not is_all_finite(course.standing):
        yield "a state is NaN or infinite after three rounds"


def _no_numbers(figures: Mapping[str, Any]) -> list[str]:
    return [f"{name}: {type(value).__name__}" for name, value in figures.items() if not _is_number(value)]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _tensors(subject: MethodUnderTest) -> Iterator[str]:
    course = subject.course
    for work in course.work:
        for what, nest in (("the message to", work.message), ("the reply of", work.reply.content)):
            for name, kind in foreign(nest).items():
                yield f"'{name}' in {what} a client is a {kind}: send tensors and dictionaries of tensors"
        for name, kind in foreign(work.kept).items():
            yield f"'{name}' in a client's private state is a {kind}: keep tensors and dictionaries of them"
        if work.number == 1 and any((foreign(work.message), foreign(work.reply.content), foreign(work.kept))):
            return
    grown = {
        name
        for work in course.rounds_work
        for name in shapes(work.copies["state"]).items() ^ shapes(work.copies["kept"]).items()
    }
    if grown:
        names = sorted({name for name, _ in grown})
        yield (
            f"a client's private state changes its shape in a round ({some(names)}): "
            "client() must return it in its final shape, so that clients can be stacked"
        )
    by_round: dict[int, list[dict[str, tuple[int, ...]]]] = {}
    for work in course.rounds_work:
        by_round.setdefault(work.number, []).append(shapes(work.copies["reply"]))
    for replies in by_round.values():
        if any(each != replies[0] for each in replies):
            odd = sorted({name for each in replies for name, _ in each.items() ^ replies[0].items()})
            yield f"replies of one round differ in shape between clients ({some(odd)}) and cannot be stacked"
            return


def _starts(subject: MethodUnderTest) -> Iterator[str]:
    """With vanishing steps, the server must get back a model that no client has seen before.

    A method whose steps do not vanish with the task's optimiser must at least return models as far apart as
    those that were sent. A model that comes back in another form, as factors of the same product, must
    predict the same.
    """
    problem = subject.problem(optimiser=VANISHING)
    host = LoopHost(problem)
    federation = run(problem, host, rounds=1)
    model = served_model(federation.server)
    if model is None:
        raise NotApplicableError("the server keeps no model")
    states = {client: host.state(client) for client in problem.train}
    sent = [noisy(model, torch.Generator().manual_seed(seed), size=0.5) for seed in (1, 2)]
    returned, rephrased = [], []
    for each in sent:
        server = with_served_model(federation.server, each)
        method, task = problem.method, problem.task
        messages = [(client, method.down(task, server, client)) for client in problem.train]
        again = WatchedHost(problem)
        again.adopt(states)
        replies = again.run(last_phase(problem), 2, messages)
        after = method.aggregate(task, server, replies)
        returned.append(served_model(after))
        before, now = (predictions(problem, state, states[0]) for state in (server, after))
        rephrased.append(bool(torch.isclose(before, now, atol=1e-3, rtol=1e-3).all()))
    missed = gaps(sent[0], returned[0], tolerance=0.02)
    if missed and not all(rephrased) and _apart(_difference(*returned), _difference(*sent)) > 0.25:
        yield (
            "clients do not start from what the server sent in this round: with vanishing steps the server's "
            f"model comes back changed by up to {max(missed.values()):.2g} in {some(list(missed))}"
        )


def _difference(one: Any, other: Any) -> torch.Tensor:
    second = flat(other)
    return torch.cat([(leaf.double() - second[name].double()).flatten() for name, leaf in flat(one).items()])


def _apart(found: torch.Tensor, expected: torch.Tensor) -> float:
    """How far one vector is from another, as a share of the latter's length."""
    return float((found - expected).norm() / expected.norm())


def _participation(subject: MethodUnderTest) -> Iterator[str]:
    subject.require_several_clients()
    problem = subject.problem()
    smallest = SIZES.index(min(SIZES))
    alone = with_only(problem, [smallest])
    host = LoopHost(problem)
    federation = run(problem, host, rounds=1)
    method, task, server = problem.method, problem.task, federation.server
    states = {client: host.state(client) for client in problem.train}
    messages = [(client, method.down(task, server, client)) for client in problem.train]
    ways = {}
    for way, order in (("in order", messages), ("the other way round", messages[::-1])):
        again = WatchedHost(problem)
        again.adopt(states)
        replies = {reply.client: reply for reply in again.run(last_phase(problem), 2, order)}
        ways[way] = {str(client): replies[client].content for client in problem.train}
    if changed := differing(*ways.values()):
        yield f"a client's reply depends on which clients worked before it ({some(changed)})"
    by_itself = run(alone, host := LoopHost(alone), rounds=2)
    if not is_all_finite({"server": by_itself.server, "client": host.state(smallest)}):
        yield "a round whose only client lacks a class leads to NaN or infinite numbers"


ROUNDS = Rule(
    "rounds",
    "The method runs on a small model: rounds change what it predicts and all numbers stay finite.",
    "The interface",
    _rounds,
    runs_it=False,
)
TENSORS = Rule(
    "tensors",
    "Messages and private states are dictionaries of tensors whose shapes are the same for all clients.",
    "Stacking",
    _tensors,
)
STARTS = Rule(
    "start of a round",
    "Clients start from what the server sent in this round.",
    "The interface",
    _starts,
)
PARTICIPATION = Rule(
    "participation",
    "Any clients may take part, in any order, also alone and without some class.",
    "The interface",
    _participation,
)
