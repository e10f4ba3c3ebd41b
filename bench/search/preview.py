"""What searches are about to do, as text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from bench.config.cell import CellConfig
from bench.engine.durations import cell_seconds, encoders_to_apply
from bench.search.budget import Budget, Limits
from bench.search.halving import rule
from bench.search.plan import Search
from bench.search.selection import RULE
from bench.search.space import describe
from bench.text import counted
from bench.trials.request import ComputingRequest


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
    if limits.auto_seeds:
        yield f"seeds: {RULE}"
    yield (
        f"objective: mean accuracy over clients on {suite.training.validation:.0%} of their training data; "
        "the test sets are not read"
    )
    stops = rule(first.measured_every, first.rounds) if first.scheduler == "asha" else "none"
    yield f"search: {first.algorithm}, seed {first.seed}; early stops: {stops}; trial 0 is the default"
    for search in searches:
        earlier = f", {counted(search.carried, 'trial')} in narrower ranges kept" if search.carried else ""
        yield f"  {search.row}: {describe(search.space)}{_part(search, limits.trials)}{earlier}"


def trials_left(search: Search, limits: Limits) -> int:
    """How many trials of a search have not ended."""
    journal, budget = search.journal(), Budget(search, limits)
    if budget.complete(journal):
        return 0
    return max(0, budget.expected() - sum(trial.outcome is not None for trial in journal.trials))


def time_in_words(request: ComputingRequest, rounds: Sequence[tuple[CellConfig, int]]) -> str:
    """The time of this number of rounds of each cell, measured on a few steps."""
    if request.address:
        return "time: not estimated for a cluster"
    if unread := encoders_to_apply((config for config, _ in rounds), request.data_root):
        return f"time: not estimated, since the features of {unread} are not computed yet"
    seconds = sum(
        cell_seconds(config, request.data_root) / config.training.rounds * count for config, count in rounds
    )
    at_once = max(1, int((os.cpu_count() or 1) / request.cpus_per_trial + 1e-9))
    at_once = min(at_once, request.max_concurrent or at_once)
    return (
        f"time: at most about {seconds / at_once / 60:.1f} min with {at_once} at once "
        f"({seconds / 60:.1f} CPU min of local steps; early stops save, evaluation, server work and further "
        "seeds add)"
    )


def _part(search: Search, trials: int) -> str:
    """How many configurations of a finite space are tried."""
    size = search.count()
    if size is None:
        return ""
    taken = min(trials, size)
    chosen = "all" if taken == size else f"{taken}, drawn with the seed,"
    return f" ({chosen} of {counted(size, 'configuration')})"
