"""What to try next: a function of the seed and the journal alone, so a kill changes nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import repeat

import numpy as np

from bench.search.journal import Trial
from bench.search.space import SearchSpace, Values
from bench.search.study import JournalStudy

STARTUP = 5
"""Trials before TPE has seen enough; they are random."""
ATTEMPTS = 5
"""Of TPE at something that was not tried yet, before a draw decides."""


def suggest(
    algorithm: str,
    space: SearchSpace,
    seed: int,
    number: int,
    past: Sequence[Trial],
    study: JournalStudy | None = None,
) -> Values | None:
    """The values of this trial, or None if there is nothing left to try. Trial 0 is the suite's own.

    `study` is one for this space, and makes it quicker.
    """
    if number == 0:
        return {}
    if not space.domains:
        return None
    tried = {_key(space.default | trial.values) for trial in past}
    if algorithm == "optuna":
        study = study or JournalStudy(space)
        draws = (_tpe(study, seed, number, attempt, past) for attempt in range(ATTEMPTS))
        fresh = next((values for values in draws if _key(values) not in tried), None)
        if fresh is not None:
            return fresh
    # A grid has one order for all its trials, so that a part of it is spread over all of it.
    return _untried(space, [seed, 0 if algorithm == "grid" else number], tried)


def _key(values: Values) -> str:
    return json.dumps(values, sort_keys=True)


def _untried(space: SearchSpace, source: list[int], tried: set[str]) -> Values | None:
    """Uniform over what there is; None if a finite space has been tried out."""
    random = np.random.default_rng(source)
    if space.size is None:
        points = (space.draw(random) for _ in repeat(None))
    else:
        points = (space.point(int(index)) for index in random.permutation(space.size))
    return next((values for values in points if _key(values) not in tried), None)


def _tpe(study: JournalStudy, seed: int, number: int, attempt: int, past: Sequence[Trial]) -> Values:
    import optuna

    source = int(np.random.default_rng([seed, number, attempt]).integers(2**31))
    return study.ask(past, optuna.samplers.TPESampler(seed=source, n_startup_trials=STARTUP))
