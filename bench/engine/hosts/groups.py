"""Which cells of a stack are computed together, and what becomes of those that cannot be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bench.engine.evaluation import Judging
from bench.engine.hosts.base import Asked, Combining, Hosts, Round
from bench.engine.hosts.combining import joint_combining
from bench.engine.hosts.joint import JointAnswers
from bench.engine.hosts.judging import joint_judging
from bench.engine.hosts.sample_sets import JointPool, Sets, arranged, by_samples, join
from bench.engine.hosts.stacked import StackedHost
from bench.engine.hosts.together import Share, steering, train_together
from bench.engine.variation import AlikeError
from methods.base import Reply


class Request(NamedTuple):
    """What one cell asks for, and the hosts of its clients."""

    hosts: Hosts
    asked: Asked

    @property
    def share(self) -> Share:
        assert isinstance(self.hosts, StackedHost)
        return Share(self.hosts, dict(self.asked.messages))


JOINT: Mapping[type, Callable[[], JointAnswers[Any, Any]]] = {
    Combining: joint_combining,
    Judging: joint_judging,
}
"""What servers ask for beside the work of clients → how it is done for several cells at once."""


class HostGroups:
    """Hosts of cells, divided into those that can be computed together.

    Groups are found when cells first ask, and split when computing them together fails: by the numbers that
    decide what is computed, or if there are none, by samples, then into single cells.
    """

    def __init__(self) -> None:
        self._groups: dict[Hosts, int] = {}
        self._pools: dict[int, JointPool] = {}
        self._joint: dict[tuple[int, type], JointAnswers[Any, Any]] = {}

    def advance(self, rounds: Mapping[Hosts, Round[Any]]) -> dict[Hosts, Exception]:
        """Go through one round of every cell; returns what went wrong, by the hosts of that cell."""
        failed: dict[Hosts, Exception] = {}
        sent: dict[Hosts, Any] = dict.fromkeys(rounds)
        while sent:
            asked: dict[Hosts, Asked | Combining | Judging] = {}
            for hosts, answer in sent.items():
                try:
                    if isinstance(answer, Exception):
                        raise answer
                    asked[hosts] = rounds[hosts].send(answer)
                except StopIteration:
                    pass
                except Exception as error:
                    failed[hosts] = error
            sent = self._done(asked)
        return failed

    def _done(self, asked: Mapping[Hosts, Asked | Combining | Judging]) -> dict[Hosts, Any]:
        """What each cell is sent in answer; an exception where a cell by itself fails."""
        works = [Request(hosts, each) for hosts, each in asked.items() if isinstance(each, Asked)]
        answers: dict[Hosts, Any] = {}
        answers |= zip((work.hosts for work in works), self._run(works), strict=True)
        others: dict[tuple[int, type], dict[Hosts, Combining | Judging]] = {}
        for hosts, each in asked.items():
            if not isinstance(each, Asked):
                others.setdefault((self._groups[hosts], type(each)), {})[hosts] = each
        for key, requests in others.items():
            joint = self._joint.setdefault(key, JOINT[key[1]]())
            answers |= zip(requests, joint.to(list(requests.values())), strict=True)
        return answers

    def forget(self, hosts: Hosts) -> None:
        self._groups.pop(hosts, None)

    def _run(self, requests: Sequence[Request]) -> list[Sequence[Reply] | Exception]:
        """The replies to each request; an exception where a cell by itself fails."""
        found: dict[Hosts, Sequence[Reply] | Exception] = {}
        for group in self._divided(requests):
            found |= self._answers(group)
        return [found[request.hosts] for request in requests]

    def _answers(self, group: Sequence[Request]) -> dict[Hosts, Sequence[Reply] | Exception]:
        if len(group) == 1:
            return {group[0].hosts: _alone(group[0])}
        number, cells = group[0].asked.number, [request.share for request in group]
        sets = by_samples(cells)
        together = arranged(sets, number)
        if together is None:
            return self._set_by_set(group, sets)
        pool = self._pools.setdefault(self._groups[group[0].hosts], JointPool())
        try:
            replies = train_together(number, together, pool)
        except Exception as error:
            self._split(group, sets, error)
            return dict(zip((request.hosts for request in group), self._run(group), strict=True))
        return {
            cell.host: of_cell
            for of_set, replies_of_set in zip(together, replies, strict=True)
            for cell, of_cell in zip(of_set, replies_of_set, strict=True)
        }

    def _set_by_set(self, group: Sequence[Request], sets: Sets) -> dict[Hosts, Sequence[Reply] | Exception]:
        """For a round: sets have other cells, or some cells are ahead of others or have failed."""
        requests = {request.hosts: request for request in group}
        found: dict[Hosts, Sequence[Reply] | Exception] = {}
        for cells in sets:
            found |= self._answers([requests[cell.host] for cell in cells])
        return found

    def _divided(self, requests: Sequence[Request]) -> list[list[Request]]:
        groups: dict[int, list[Request]] = {}
        # New ones come last, so that a cell which was ahead finds the others that have caught up with it.
        for request in sorted(requests, key=lambda each: each.hosts not in self._groups):
            if request.hosts not in self._groups:
                self._groups[request.hosts] = self._group_of(request, groups)
            groups.setdefault(self._groups[request.hosts], []).append(request)
        return list(groups.values())

    def _group_of(self, request: Request, groups: dict[int, list[Request]]) -> int:
        """That of cells it fits together with, or one of its own."""
        for group, others in groups.items():
            if (
                isinstance(request.hosts, StackedHost)
                and isinstance(others[0].hosts, StackedHost)
                and request.asked.phase == others[0].asked.phase
                and join(request.hosts, [each.share.host for each in others], request.asked.number)
            ):
                return group
        return self._new_group()

    def _split(self, group: Sequence[Request], sets: Sets, error: Exception) -> None:
        self._pools.pop(self._groups[group[0].hosts], None)  # which may have a copy of all samples
        values: list[tuple[float, ...]] = []
        if len(sets) == 1 or not isinstance(error, AlikeError):
            values = steering(group[0].asked.number, [request.share for request in group])
        if len(sets) > 1 and not any(values):
            for cells in sets:
                new = self._new_group()
                self._groups |= {cell.host: new for cell in cells}
            return
        numbers: dict[object, int] = {}
        for position, request in enumerate(group):
            number = numbers.setdefault(values[position] or position, self._new_group() + position)
            self._groups[request.hosts] = number

    def _new_group(self) -> int:
        return max(self._groups.values(), default=-1) + 1


def _alone(request: Request) -> Sequence[Reply] | Exception:
    try:
        return request.hosts.run(*request.asked)
    except Exception as error:
        return error
