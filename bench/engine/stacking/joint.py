"""Rounds of several cells at once: what they ask for at the same time is computed together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from torch import Tensor

from bench.engine.asked import Asked, Round
from bench.engine.clients.base import Hosts
from bench.engine.clients.stacked import StackedHost
from bench.engine.shared_preludes import are_same
from bench.engine.stacking.call import train_together
from bench.engine.stacking.differing_numbers import fixed_settings, numbers_of, setting
from bench.engine.stacking.layout import Member, grouped, layout
from bench.engine.stacking.replies import StackedReplies
from bench.engine.stacking.samples import Pool, may_have_parts
from bench.engine.stacking.servers import combined_together, predicted_together
from methods.base import FedAlgorithm

FUNCTIONS = ("local", "aggregate", "predict")
"""Those of a method that are called for several cells at once."""
OF_SERVERS: Mapping[str, Callable[[Sequence[Asked]], Sequence[Any]]] = {
    "aggregate": combined_together,
    "predict": predicted_together,
}


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

    def __init__(self, stacked: Collection[str] = FUNCTIONS) -> None:
        """`stacked`: the functions that are called for several cells; the others are called cell by cell."""
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
            asked: dict[Hosts, Asked] = {}
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

    def _answers(self, asked: Mapping[Hosts, Asked]) -> dict[Hosts, Any]:
        """What each cell is sent; an exception where computing it failed."""
        found = self._replies({hosts: each for hosts, each in asked.items() if each.function == "local"})
        of_servers = [hosts for hosts in asked if hosts not in found]
        for cells in grouped(of_servers, lambda hosts: self._key(hosts, asked[hosts])):
            requests = {hosts: asked[hosts] for hosts in cells}
            found |= _computed(requests, OF_SERVERS[asked[cells[0]].function])
        return found

    def _replies(self, asked: Mapping[Hosts, Asked]) -> dict[Hosts, Any]:
        """What the clients of these cells answer."""
        found: dict[Hosts, Any] = {}
        cells: list[StackedHost] = []
        for hosts, request in asked.items():
            if not isinstance(hosts, StackedHost) or "local" not in self._stacked:
                found |= _computed({hosts: request})
                continue
            try:
                if hosts not in self._members:
                    self._members[hosts] = self._member(hosts)
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

            def together(requests: Sequence[Asked], sets: Any = sets) -> list[StackedReplies]:
                pool = self._joined([of_set[0] for of_set in sets], copies) if len(sets) > 1 else None
                messages = [{hosts: asked[hosts].given for hosts in of_set} for of_set in sets]
                replies = train_together(requests[0].number, messages, pool)
                return [of_cell for of_set in replies for of_cell in of_set]

            found |= _computed({hosts: asked[hosts] for of_set in sets for hosts in of_set}, together)
        return found

    def _member(self, host: StackedHost) -> Member:
        """What there is to know of a cell, when it first asks for its clients' work."""
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
        numbers = numbers_of(setting(problem.method, problem.task.optimiser))
        return Member(kind, numbers, id(host.source), steps, copied)

    def _kind(self, host: StackedHost, method: FedAlgorithm) -> Any:
        """Equal for cells that differ only in numbers, samples and seed, unless the method reads the seed."""
        task = host.problem.task
        fixed = fixed_settings(setting(method, task.optimiser))
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

    def _key(self, hosts: Hosts, request: Asked) -> Any:
        """Equal for servers that one call serves; that of a cell by itself is its own."""
        if hosts not in self._members or request.function not in self._stacked:
            return id(hosts)
        method = request.problem.method
        if request.function == "aggregate":
            replies = request.given
            if method.stacks_server and isinstance(replies, StackedReplies):
                return id(replies.outcomes), replies.of_set
            return id(hosts)
        if not method.stacks_predictions:
            return id(hosts)
        assert isinstance(hosts, StackedHost)
        is_own = method is hosts.problem.method  # or another way to predict
        kind = self._members[hosts].kind if is_own else self._kind(hosts, method)
        return [id(samples.x) for samples in request.given], kind

    def _joined(self, hosts: Sequence[StackedHost], copies: Mapping[Any, Pool]) -> Pool:
        """The samples of several cells as one pool, with a set for each of them."""
        if hosts[0].makes and may_have_parts(hosts[0].problem.task.device):  # there may be gigabytes
            pools = [host.whole_pool() for host in hosts]
            return Pool.joined([pool.of_set(place) for place, pool in enumerate(pools) if pool is not None])
        sources = tuple(host.source for host in hosts)
        self._copies[sources] = copies.get(sources) or Pool.of(
            *({client: [host.made(client, number=0)] for client in host.problem.train} for host in hosts)
        )
        return self._copies[sources]


def _computed(
    requests: Mapping[Hosts, Asked], together: Callable[[Sequence[Asked]], Sequence[Any]] | None = None
) -> dict[Hosts, Any]:
    """The answers to requests that one call computes; where it fails, the exception for each of them."""
    first, *others = requests.values()
    try:
        answers = together([first, *others]) if together and others else [first.alone()]
    except Exception as error:
        failure = StackError(first.function, len(requests), error) if others else error
        return dict.fromkeys(requests, failure)
    return dict(zip(requests, answers, strict=True))
