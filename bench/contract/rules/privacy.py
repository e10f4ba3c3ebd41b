"""A client's data and private state stay with the client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import torch

from bench.contract.fixtures import PLAIN, VANISHING
from bench.contract.method_under_test import MethodUnderTest
from bench.contract.nests import differing, flat, noisy, shared_numbers, some
from bench.contract.rule import Rule
from bench.contract.runs import Course, Work
from methods.base import State


def _privacy(subject: MethodUnderTest) -> Iterator[str]:
    yield from _samples(subject)
    course = _marked(subject, PLAIN)
    if not any(flat(work.kept) for work in course.rounds_work):
        return
    # With vanishing steps a private part still has, after training, the numbers that it began with.
    for each in (course, _marked(subject, VANISHING)):
        found = [set(shared_numbers(work.reply.content, work.state)) for work in each.rounds_work]
        leaks = [(sent, kept) for sent, kept in _regular(found) if not _by_design(subject, kept)]
        for sent, kept in leaks:
            yield f"'{sent}' in a client's reply has numbers of '{kept}', which is part of its private state"
        if leaks:
            return
    yield from _others(subject)


def _by_design(subject: MethodUnderTest, kept: str) -> bool:
    """Whether the method declares that its replies contain numbers of this private entry."""
    return any(kept == name or kept.startswith(f"{name}.") for name in subject.kind.reveals)


def _samples(subject: MethodUnderTest) -> Iterator[str]:
    course, train = subject.course, subject.course.problem.train
    by_phase: dict[int, list[Work]] = {}
    for work in course.work:
        by_phase.setdefault(work.phase, []).append(work)
    for works in by_phase.values():
        found = _regular(
            [set(shared_numbers(work.reply.content, {"x": train[work.client].x})) for work in works]
        )
        for sent, _ in found:
            yield f"'{sent}' in a client's reply has numbers of the client's raw samples"
        labels = _regular([_labels_in(work, train[work.client].y) for work in works])
        for sent, _ in labels:
            yield f"'{sent}' in a client's reply is the list of the labels of the client's samples"


def _labels_in(work: Work, y: torch.Tensor) -> set[tuple[str, str]]:
    return {
        (name, "y")
        for name, leaf in flat(work.reply.content).items()
        if leaf.numel() == len(y) and torch.equal(leaf.flatten().float(), y.float())
    }


def _regular(found: list[set[tuple[str, str]]]) -> list[tuple[str, str]]:
    """What turns up in at least half of the replies: two random floats may be equal once by chance."""
    counts = Counter(pair for each in found for pair in each)
    return [
        pair for pair, count in counts.items() if 2 * count >= len(found) and (count > 1 or len(found) == 1)
    ]


def _marked(subject: MethodUnderTest, optimiser: object) -> Course:
    """Two rounds with noise on private states that makes every number in them unique."""
    draw = torch.Generator().manual_seed(1)
    problem = subject.problem(optimiser=optimiser)
    return Course.of(problem, rounds=2, disturb=lambda client, state: noisy(state, draw))


def _others(subject: MethodUnderTest) -> Iterator[str]:
    """One client's private state has no part in what others are sent and reply in the same round."""
    if subject.kind.pools_data:
        return
    problem = subject.problem()
    first = min(problem.train)

    def disturb(client: int, state: State) -> State:
        return noisy(state, torch.Generator().manual_seed(1)) if client == first else state

    usual, disturbed = (
        {
            str(work.client): {"message": work.message, "reply": work.reply.content}
            for work in Course.of(problem, rounds=1, disturb=how).rounds_work
            if work.client != first
        }
        for how in (None, disturb)
    )
    if changed := differing(usual, disturbed):
        yield f"one client's private state changes what others are sent or reply ({some(changed)})"


PRIVACY = Rule(
    "privacy",
    "A client's samples and private state never appear in its replies or reach other clients.",
    "Privacy",
    _privacy,
)
