"""What searches are about to do, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.search.budget import Limits
from bench.search.halving import rule
from bench.search.plan import Search
from bench.search.space import describe
from bench.text import counted


def preview(searches: Sequence[Search], limits: Limits) -> Iterator[str]:
    """The suite, the budget, the objective and every method's space, one line each."""
    first = searches[0]
    suite = first.suite
    yield f"suite {suite.suite} v{suite.version}: {suite.title}"
    rounds = (
        f" = {limits.trials * first.cost} rounds, early stops make room for more trials"
        if limits.by_rounds
        else ""
    )
    yield (
        f"budget: {counted(limits.trials, 'trial')} per method{rounds}; a trial has "
        f"{counted(first.rounds, 'round')} in {counted(len(first.cells({})), 'cell')}"
    )
    yield (
        f"objective: mean accuracy over clients on {suite.training.validation:.0%} of their training data; "
        "the test sets are not read"
    )
    stops = rule(first.measured_every, first.rounds) if first.scheduler == "asha" else "none"
    yield f"search: {first.algorithm}, seed {first.seed}; early stops: {stops}; trial 0 is the default"
    for search in searches:
        yield f"  {search.row}: {describe(search.space)}{_part(search, limits.trials)}"


def _part(search: Search, trials: int) -> str:
    """How many configurations of a finite space are tried."""
    size = search.count()
    if size is None:
        return ""
    taken = min(trials, size)
    chosen = "all" if taken == size else f"{taken}, drawn with the seed,"
    return f" ({chosen} of {counted(size, 'configuration')})"
