"""What a study is about to do, in words: its searches, its cells, and how long they may take."""

from __future__ import annotations

import os
from collections.abc import Iterator

from bench.errors import UserError
from bench.runs.estimates import cell_seconds
from bench.search.budget import Budget
from bench.search.preview import preview as preview_searches
from bench.studies.request import StudyRequest
from bench.suite.model import Suite
from bench.words import counted


def preview(request: StudyRequest) -> Iterator[str]:
    """The plan of every suite, and the time of all together."""
    seconds = 0.0
    for place, suite in enumerate(request.loaded):
        yield f"study, suite {place + 1} of {len(request.loaded)}: {suite.suite}"
        yield from preview_searches(request.tuning(suite).searches(), request.tuning(suite).limits())
        trials, unspent = _trials_left(request, suite)
        yield f"searches: {counted(trials, 'trial')} to run"
        cells, words = _cells_left(request, suite)
        yield f"run: {words}"
        seconds += _seconds_of_a_round(request, suite) * (unspent + cells * _rounds(request, suite))
    if len(request.loaded) > 1:
        yield f"ranking over {len(request.loaded)} suites"
    if request.address:
        yield "time: not estimated for a cluster"
    else:
        at_once = max(1, int((os.cpu_count() or 1) / request.cpus_per_trial + 1e-9))
        at_once = min(at_once, request.max_concurrent or at_once)
        yield (
            f"time: at most about {seconds / at_once / 60:.1f} min with {at_once} at once "
            f"({seconds / 60:.1f} CPU min of local steps; early stops save, evaluation and server work add)"
        )


def _trials_left(request: StudyRequest, suite: Suite) -> tuple[int, int]:
    """Trials that have not ended, over all methods, and the rounds they may take."""
    asked = request.tuning(suite)
    trials = rounds = 0
    for search in asked.searches():
        journal = search.journal()
        if not Budget(search, asked.limits()).complete(journal):
            ended = sum(trial.outcome is not None for trial in journal.trials)
            left = min(asked.trials, search.count() or asked.trials) - ended
            trials, rounds = trials + left, rounds + left * search.cost
    return trials, rounds


def _cells_left(request: StudyRequest, suite: Suite) -> tuple[int, str]:
    """Cells to run, as far as that is known before the searches have ended."""
    try:
        plan = request.run(suite).plan()
    except UserError:  # a search has not ended
        cells = 2 * len(request.run(suite, tuned=False).plan().cells)
        return cells, f"up to {counted(cells, 'cell')}: a tuned and a default row per method"
    pending = len(plan.pending())
    return pending, f"{counted(len(plan.cells), 'cell')}, {len(plan.cells) - pending} already done"


def _rounds(request: StudyRequest, suite: Suite) -> int:
    return request.rounds or suite.training.rounds


def _seconds_of_a_round(request: StudyRequest, suite: Suite) -> float:
    """Of the suite's first cell, measured on a few steps."""
    asked = request.run(suite, tuned=False)
    first = asked.plan().cells[0].config
    return cell_seconds(first, asked.conditions()) / first.training.rounds
