"""What a study is about to do, in words: its searches, its cells, and how long they may take."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from bench.config.cell import CellConfig
from bench.runs.estimates import cell_seconds, encoders_to_apply
from bench.runs.plan import plan_of
from bench.search.budget import Budget
from bench.search.plan import Search
from bench.search.preview import preview as preview_searches
from bench.search.request import TuneRequest
from bench.studies.request import StudyRequest
from bench.text import counted


def in_words(request: StudyRequest, searches: Mapping[str, Sequence[Search]]) -> Iterator[str]:
    """The plan of every suite, and the time of all together; `searches` are those of each suite's name."""
    rounds: list[tuple[CellConfig, int]] = []
    for place, suite in enumerate(request.loaded):
        asked, own = request.tuning(suite), searches[suite.suite]
        yield f"study, suite {place + 1} of {len(request.loaded)}: {suite.suite}"
        yield from preview_searches(own, asked.limits())
        trials, unspent = _trials_left(asked, own)
        yield f"searches: {counted(trials, 'trial')} to run"
        plan = plan_of(request.run(suite, tuned=trials == 0))
        if trials:  # which rows there will be is known once the searches have ended
            cells = 2 * len(plan.cells)
            yield f"run: up to {counted(cells, 'cell')}: a tuned and a default row per method"
        else:
            cells = len(plan.pending())
            yield f"run: {counted(len(plan.cells), 'cell')}, {len(plan.cells) - cells} already done"
        first = plan.cells[0].config
        rounds.append((first, unspent + cells * first.training.rounds))
    if len(request.loaded) > 1:
        yield f"ranking over {len(request.loaded)} suites"
    yield _time(request, rounds)


def _trials_left(asked: TuneRequest, searches: Sequence[Search]) -> tuple[int, int]:
    """Trials that have not ended, over all methods, and the rounds they may take."""
    trials = rounds = 0
    for search in searches:
        journal = search.journal()
        if not Budget(search, asked.limits()).complete(journal):
            ended = sum(trial.outcome is not None for trial in journal.trials)
            left = min(asked.trials, search.count() or asked.trials) - ended
            trials, rounds = trials + left, rounds + left * search.cost
    return trials, rounds


def _time(request: StudyRequest, rounds: Sequence[tuple[CellConfig, int]]) -> str:
    """The time of so many rounds of each cell, measured on a few steps."""
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
        f"({seconds / 60:.1f} CPU min of local steps; early stops save, evaluation and server work add)"
    )
