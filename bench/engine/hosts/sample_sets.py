"""Cells whose clients train on other samples: of other seeds, or because their methods make others.

Cells that have the same samples, a set, share batches. Of other sets there may be cells with the same
settings, so that all of them form a table of sets and settings; or every cell stands for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from bench.engine.hosts.base import KEPT_BYTES
from bench.engine.hosts.pool import Pool, may_have_parts
from bench.engine.hosts.seeds import may_join
from bench.engine.variation import AlikeError, Variation

if TYPE_CHECKING:
    from bench.engine.hosts.stacked import StackedHost
    from bench.engine.hosts.together import Share

Sets: TypeAlias = "Sequence[Sequence[Share]]"
"""Cells that are computed together. Those of one set have the same samples; if a set has several cells, there
are cells with the same settings, in the same order, in all sets."""
WORTH_SHARING = 2
"""Cells per set, on average, from which on sharing batches gains more than one stack of all sets."""
WORTH_PADDING = 1.5
"""How many times as many steps as another cell's largest client that of a cell beside it may take."""


def by_samples(cells: Sequence[Share]) -> list[list[Share]]:
    """The cells that share their samples."""
    found: dict[int, list[Share]] = {}
    for cell in cells:
        found.setdefault(id(cell.host.source), []).append(cell)
    return list(found.values())


def arranged(sets: Sequence[list[Share]], number: int) -> Sets | None:
    """Sets that can be computed together, of these cells; None: they are best computed set by set."""
    if len(sets) == 1 or _are_even(sets, number):
        return sets
    cells = [cell for of_set in sets for cell in of_set]
    return [[cell] for cell in cells] if len(cells) < WORTH_SHARING * len(sets) else None


def _are_even(sets: Sequence[Sequence[Share]], number: int) -> bool:
    """Whether there are cells with the same settings in every set."""
    settings = [[cell.host.setting(number).in_rounds() for cell in cells] for cells in sets]
    return all(each == settings[0] for each in settings)


def join(host: StackedHost, others: Sequence[StackedHost], number: int) -> bool:
    """Whether a cell differs from these, which fit together, in numbers and samples alone.

    Then it shares the samples of one that makes the same, or is of like size.
    """
    try:
        Variation.among([host.setting(number), others[0].setting(number)])
    except AlikeError:
        return False
    of_its_seed = [other for other in others if other.problem.train is host.problem.train]
    same = next((other for other in of_its_seed if host.makes_the_same(other)), None)
    if same is not None:
        host.share_samples(same)
        return True
    if not (of_its_seed or may_join(host, others[0])):
        return False
    return not host.makes or all(_are_of_like_size(host, other) for other in others)


def _are_of_like_size(host: StackedHost, other: StackedHost) -> bool:
    """Whether the two are stacked without much padding; not if there is no room for their samples."""
    pools = [each.whole_pool() for each in (host, other)]
    steps = [host.problem.steps_of(pool.most) for pool in pools if pool is not None]
    return len(steps) == len(pools) and max(steps) <= WORTH_PADDING * min(steps)


class JointPool:
    """The samples of several sets as one pool."""

    def __init__(self) -> None:
        self._of: list[StackedHost] = []
        self._pool: Pool | None = None

    def of(self, hosts: Sequence[StackedHost]) -> Pool | None:
        """None if there is no room for them. A host per set; a client is known by its set's place, too."""
        if hosts[0].makes and may_have_parts(hosts[0].problem.task.device):
            return _side_by_side(hosts)  # as there may be gigabytes
        sources = [host.source for host in hosts]
        if sources != self._of:
            self._of, self._pool = sources, _copied_together(hosts)
        return self._pool


def _side_by_side(hosts: Sequence[StackedHost]) -> Pool | None:
    pools = [host.whole_pool() for host in hosts]
    found = [pool.of_set(position) for position, pool in enumerate(pools) if pool is not None]
    return Pool.joined(found) if len(found) == len(hosts) else None


def _copied_together(hosts: Sequence[StackedHost]) -> Pool | None:
    samples = {}
    size = 0
    for position, host in enumerate(hosts):
        for client in host.problem.train:
            made = host.made(client, number=0)
            size += made.bytes
            if size > KEPT_BYTES:
                return None
            samples[position, client] = [made]
    return Pool.of(samples)
