"""Rounds of several cells at once: what they ask for at the same time is computed together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from torch import Tensor

from bench.engine.clients.base import Asked, Combining, Hosts, Round
from bench.engine.clients.stacked import StackedHost
from bench.engine.evaluation import Judging
from bench.engine.shared_preludes import are_same
from bench.engine.stacking.call import train_together
from bench.engine.stacking.differing_numbers import Hyperparameters, setting
from bench.engine.stacking.layout import Member, grouped, layout
from bench.engine.stacking.replies import StackedReplies
from bench.engine.stacking.samples import Pool, may_have_parts
from bench.engine.stacking.servers import combined_together, judged_together
from methods.base import FedAlgorithm

FUNCTIONS: Mapping[type, str] = {Asked: "local", Combining: "aggregate", Judging: "predict"}
"""What cells ask for → the function of the method that it takes."""


class StackError(Exception):
    """Several cells could not be computed together; each of them may be by itself."""

    def __init__(self, function: str, cells: int, cause: Exception) -> None:
        first_line = next(iter(str(cause).strip().splitlines()), "")
        reason = f"{type(cause).__name__}: {first_line}" if first_line else type(cause).__name__
        super().__init__(f"{function} of {cells} cells could not be computed in one stack ({reason})")
        self.function, self.__cause__ = function, cause


class JointRounds:
    """Advances cells round by round, with as few calls as the layout allows.

    What goes wrong in a call is the failure of all its cells: whoever runs them tries each by itself.
    """

    def __init__(self, stacked: Collection[type] = tuple(FUNCTIONS)) -> None:
        """`stacked`: what is computed together; everything else is computed cell by cell."""
        self._stacked = stacked
        self._members: dict[Hosts, Member] = {}
        self._laid_out: tuple[list[StackedHost], list[list[list[int]]]] = [], []
        self._frozen: list[dict[str, Tensor]] = []
        self._copies: dict[tuple[Hosts, ...], Pool] = {}

    def advance(self, rounds: Mapping[Hosts, Round]) -> dict[Hosts, Exception]:
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
            sent = self._answers(asked)
        return failed

    def forget(self, hosts: Hosts) -> None:
        """Go on without this cell."""
        self._members.pop(hosts, None)

    def _answers(self, asked: Mapping[Hosts, Asked | Combining | Judging]) -> dict[Hosts, Any]:
        """What each cell is sent; an exception where computing it failed."""
        found = self._replies({hosts: each for hosts, each in asked.items() if isinstance(each, Asked)})
        for cells in grouped(list(asked), lambda hosts: self._key(hosts, asked[hosts])):
            requests = {hosts: asked[hosts] for hosts in cells}
            if isinstance(asked[cells[0]], Combining):
                found |= _computed(requests, combined_together)
            elif isinstance(asked[cells[0]], Judging):
                found |= _computed(requests, judged_together)
        return found

    def _replies(self, asked: Mapping[Hosts, Asked]) -> dict[Hosts, Any]:
        """What the clients of these cells answer."""
        found: dict[Hosts, Any] = {}
        cells: list[StackedHost] = []
        for hosts, request in asked.items():
            if not isinstance(hosts, StackedHost) or Asked not in self._stacked:
                found |= _computed({hosts: request}, train_together)
                continue
            try:
                self._meet(hosts)
            except Exception as error:  # of a method that makes samples
                found[hosts] = error
            else:
                cells.append(hosts)
        copies, self._copies = self._copies, {}
        if cells != self._laid_out[0]:
            room = min((hosts.room for hosts in cells), default=0)
            self._laid_out = cells, layout([self._members[hosts] for hosts in cells], room)
        for call in self._laid_out[1]:
            sets = [[cells[place] for place in of_set] for of_set in call]
            requests = [[asked[hosts] for hosts in of_set] for of_set in sets]

            def together(_: Any, sets: Any = sets, requests: Any = requests) -> list[StackedReplies]:
                pool = self._joined([of_set[0] for of_set in sets], copies) if len(sets) > 1 else None
                return [replies for of_set in train_together(requests, pool) for replies in of_set]

            found |= _computed({each.hosts: each for of_set in requests for each in of_set}, together)
        return found

    def _meet(self, host: StackedHost) -> None:
        """Find out what there is to know of a cell, when it first asks for its clients' work."""
        if host in self._members:
            return
        problem = host.problem
        kind = self._kind(host, problem.method)
        for other, member in self._members.items():
            if kind == member.kind and isinstance(other, StackedHost) and host.makes_the_same(other):
                host.share_samples(other)
                break
        steps: int | None = 0
        copied = sum(samples.bytes for samples in problem.train.values())
        if host.makes:
            pool = host.whole_pool()
            steps = None if pool is None else problem.steps_of(pool.most)
            in_parts = pool is None or may_have_parts(problem.task.device)
            copied = 0 if pool is None or in_parts else sum(part.bytes for part in pool.parts)
        numbers = Hyperparameters.of(setting(problem.method, problem.task.optimiser)).numbers
        self._members[host] = Member(kind, numbers, id(host.source), steps, copied)

    def _kind(self, host: StackedHost, method: FedAlgorithm) -> Any:
        """Equal for cells that differ only in numbers, samples and seed, unless the method reads the seed."""
        task = host.problem.task
        fixed = Hyperparameters.of(setting(method, task.optimiser)).fixed
        rest = {
            name: tensor
            for name, tensor in [*task.model.named_parameters(), *task.model.named_buffers()]
            if name not in task.initial
        }
        known = (at for at, other in enumerate(self._frozen) if are_same(rest, other))
        if (at := next(known, None)) is None:
            at = len(self._frozen)
            self._frozen.append(rest)
        one_seed = id(host.problem.train) if method.reads_seed else None
        return fixed, task.domains, task.clients, task.per_round, at, one_seed

    def _key(self, hosts: Hosts, request: Asked | Combining | Judging) -> Any:
        """Equal for what is computed by one call; that of a cell by itself is its own."""
        if hosts not in self._members or type(request) not in self._stacked or isinstance(request, Asked):
            return id(hosts)
        method = request.problem.method
        if isinstance(request, Combining):
            replies = request.replies
            if method.stacks_server and isinstance(replies, StackedReplies):
                return id(replies.outcomes), replies.of_set
            return id(hosts)
        if not method.stacks_predictions:
            return id(hosts)
        assert isinstance(hosts, StackedHost)
        is_own = method is hosts.problem.method  # or another way to predict
        kind = self._members[hosts].kind if is_own else self._kind(hosts, method)
        return [id(samples.x) for samples in request.sets], kind

    def _joined(self, hosts: Sequence[StackedHost], copies: Mapping[Any, Pool]) -> Pool:
        """The samples of several cells as one pool; a client is known by its cell's place, too."""
        if hosts[0].makes and may_have_parts(hosts[0].problem.task.device):  # there may be gigabytes
            pools = [host.whole_pool() for host in hosts]
            return Pool.joined([pool.of_set(place) for place, pool in enumerate(pools) if pool is not None])
        sources = tuple(host.source for host in hosts)
        self._copies[sources] = copies.get(sources) or Pool.of(
            {
                (place, client): [host.made(client, number=0)]
                for place, host in enumerate(hosts)
                for client in host.problem.train
            }
        )
        return self._copies[sources]


def _computed(requests: Mapping[Hosts, Any], together: Callable[[Any], Sequence[Any]]) -> dict[Hosts, Any]:
    """The answers to requests that one call computes; where it fails, the exception for each of them."""
    first, *others = requests.values()
    try:
        answers = together([first, *others]) if others else [first.alone()]
    except Exception as error:
        function = FUNCTIONS[type(first)]
        return dict.fromkeys(requests, StackError(function, len(requests), error) if others else error)
    return dict(zip(requests, answers, strict=True))
