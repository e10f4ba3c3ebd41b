"""Functions of a method depend on their arguments alone and change none of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.contract.method_under_test import MethodUnderTest
from bench.contract.nests import copied, differing, some
from bench.contract.rule import Rule
from bench.contract.runs import Course, WatchedHost


def _in_place(subject: MethodUnderTest) -> Iterator[str]:
    course = subject.course
    course.federation.evaluate(personal=True)
    for what, key in (("task.initial", "initial"), ("a client's data", "data")):
        if changed := differing(course.inputs[key], course.input_copies[key]):
            yield f"{what} is changed in place ({some(changed)}): compute new tensors instead"
    servers = {
        name
        for now, then in zip(course.servers, course.server_copies, strict=True)
        for name in differing(now, then)
    }
    if servers:
        yield f"the server's state is changed in place ({some(sorted(servers))}): return a new one instead"
    for name in sorted({name for work in course.work for name in work.edited}):
        part, _, leaf = name.partition(".")
        what = {
            "message": "the message to a client",
            "reply": "a client's reply",
            "state": "a client's private state",
            "kept": "a client's private state",
        }[part]
        yield f"'{leaf}' in {what} is changed in place: compute a new tensor instead"
        return


def _repeatable(subject: MethodUnderTest) -> Iterator[str]:
    """After other work, the same inputs give a new object of the method the same results."""
    course = subject.course
    before = subject.fresh().model_dump(mode="json")
    Course.of(subject.problem(seed=1), rounds=1)
    if subject.method.model_dump(mode="json") != before or subject.method != subject.fresh():
        yield "the method's object changes during a run: keep what lasts in the server's or client's state"
        return
    if changed := differing(*_replayed(subject, course)):
        yield (
            f"local gives other results from the same inputs after other work ({some(changed)}): "
            "something is kept outside of the states, on the object, its class or its module"
        )


def _replayed(subject: MethodUnderTest, course: Course) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the clients' work came to, and what it comes to with copies of the same inputs."""
    then, now = {}, {}
    for at, work in enumerate(course.rounds_work):
        host = WatchedHost(subject.problem_of_its_own())
        host.adopt({work.client: copied(work.copies["state"])})
        (reply,) = host.run(work.phase, work.number, [(work.client, copied(work.copies["message"]))])
        then[str(at)] = {"reply": work.copies["reply"], "kept": work.copies["kept"]}
        now[str(at)] = {"reply": reply.content, "kept": host.state(work.client)}
    return then, now


IN_PLACE = Rule(
    "nothing in place",
    "No function changes its arguments: the server's state, messages, replies, private states and data.",
    "Purity",
    _in_place,
)
REPEATABLE = Rule(
    "purity",
    "The same inputs give the same results, whatever the object has computed before.",
    "Purity",
    _repeatable,
)
