"""The bytes of messages are counted, and nothing passes between server and clients beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.contract.method_under_test import MethodUnderTest, raised
from bench.contract.nests import copied, differing, flat, some
from bench.contract.rule import Rule
from bench.contract.runs import Course, Work


def _traffic(subject: MethodUnderTest) -> Iterator[str]:
    course = subject.course
    for number, record in enumerate([course.prelude, *course.records]):
        work = [each for each in course.work if each.number == number]
        for way, key in (("to", "bytes_down"), ("from", "bytes_up")):
            nests = [each.message if way == "to" else each.reply.content for each in work]
            travelled = _bytes(nests)
            if record is not None and travelled != record[key]:
                yield (
                    f"in round {number}, {travelled} bytes travel {way} the clients but {record[key]} are "
                    "counted: messages must consist of tensors"
                )
                return
    if subject.kind.one_round and any(record["bytes_up"] + record["bytes_down"] for record in course.records):
        yield "it has one_round = True, but something is sent in the rounds"
        return
    yield from _beside_the_messages(subject, course)


def _bytes(nests: Sequence[Any]) -> int:
    return sum(leaf.numel() * leaf.element_size() for nest in nests for leaf in flat(nest).values())


def _beside_the_messages(subject: MethodUnderTest, course: Course) -> Iterator[str]:
    """A server that has had no contact with the clients but their replies must come to the same state."""
    Course.of(subject.problem(seed=1), rounds=1)
    problem = subject.problem_of_its_own()
    method, task = problem.method, problem.task
    for number in range(1, len(course.records) + 1):
        work: list[Work] = [each for each in course.rounds_work if each.number == number]
        server, expected = course.server_copies[number], course.server_copies[number + 1]
        replies = [each.reply._replace(content=copied(each.copies["reply"])) for each in work]
        try:
            messages = {str(each.client): method.down(task, copied(server), each.client) for each in work}
            found = method.aggregate(task, copied(server), replies)
        except Exception as error:
            yield f"a server that has only its state and the replies raises {raised(subject, error)}"
            return
        if changed := differing({str(each.client): each.copies["message"] for each in work}, messages):
            yield f"down sends something that is not in the server's state ({some(changed)})"
            return
        if changed := differing(expected, found):
            yield (
                f"aggregate uses something that is neither in the server's state nor in a reply "
                f"({some(changed)})"
            )
            return


TRAFFIC = Rule(
    "traffic",
    "All that passes between server and clients is in the messages, and their bytes are counted.",
    "Traffic",
    _traffic,
)
