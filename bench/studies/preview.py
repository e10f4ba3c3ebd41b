"""What a study is about to do, in words: its searches, its cells, and how long they may take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bench.config.cell import CellConfig
from bench.runs.plan import plan_of
from bench.search.plan import Search
from bench.search.preview import preview as preview_searches
from bench.search.preview import time_in_words, trials_left
from bench.studies.request import StudyRequest
from bench.text import counted


def in_words(request: StudyRequest, searches: Mapping[str, Sequence[Search]]) -> Iterator[str]:
    """The plan of every suite, and the time of all together; `searches` are those of each suite's name."""
    rounds: list[tuple[CellConfig, int]] = []
    for place, suite in enumerate(request.loaded):
        asked, own = request.tuning(suite), searches[suite.suite]
        yield f"study, suite {place + 1} of {len(request.loaded)}: {suite.suite}"
        yield from preview_searches(own, asked.limits())
        left = [(search, trials_left(search, asked.limits())) for search in own]
        trials, unspent = sum(count for _, count in left), sum(count * search.cost for search, count in left)
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
    yield time_in_words(request, rounds)
