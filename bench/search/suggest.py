"""What to try next: a function of the seed and the journal only, so a kill changes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from bench.search.journal import Trial
from bench.search.optuna_study import OptunaStudy
from bench.search.space import SearchSpace, Values

STARTUP = 5
"""The number of random trials before TPE begins."""
ATTEMPTS = 5
"""How often TPE is asked for an untried configuration, before a random one is taken."""
TPE: Mapping[str, Any] = {
    "n_startup_trials": STARTUP,
    "n_ei_candidates": 24,
    "group": False,
    "multivariate": True,
    "constant_liar": True,
}
"""Everything but the seed, since Optuna's defaults change between versions: 5.0 changed the last two."""


def sampler(algorithm: str) -> dict[str, Any]:
    """What draws configurations, and its options, for the record."""
    if algorithm == "optuna":
        return {"name": "optuna.samplers.TPESampler", **TPE, "attempts": ATTEMPTS}
    return {"name": "numpy.random.Generator", "order": "uniform, without repetition"}


def suggest(
    algorithm: str,
    space: SearchSpace,
    seed: int,
    number: int,
    past: Sequence[Trial],
    optuna_study: OptunaStudy | None = None,
) -> Values | None:
    """The values of this trial; None if nothing is left to try. Trial 0 has the suite's own values.

    `optuna_study`: one of this space that has grown with the journal, which is quicker than a new one.
    """
    if number == 0:
        return {}
    if not space.domains:
        return None
    tried = {_key(space.default | trial.values) for trial in past}
    if algorithm == "optuna":
        optuna_study = optuna_study or OptunaStudy(space)
        draws = (_tpe(optuna_study, seed, number, attempt, past) for attempt in range(ATTEMPTS))
        fresh = next((values for values in draws if _key(values) not in tried), None)
        if fresh is not None:
            return fresh
    # All trials of a grid use one random order, so that a part of the grid is spread over all of it.
    return _untried(space, [seed, 0 if algorithm == "grid" else number], tried)


def _key(values: Values) -> str:
    return json.dumps(values, sort_keys=True)


def _untried(space: SearchSpace, source: list[int], tried: set[str]) -> Values | None:
    """An untried configuration, drawn uniformly; None if all of a finite space have been tried."""
    random = np.random.default_rng(source)
    if space.size is None:
        points = (space.draw(random) for _ in repeat(None))
    else:
        points = (space.point(int(index)) for index in random.permutation(space.size))
    return next((values for values in points if _key(values) not in tried), None)


def _tpe(optuna_study: OptunaStudy, seed: int, number: int, attempt: int, past: Sequence[Trial]) -> Values:
    import optuna

    source = int(np.random.default_rng([seed, number, attempt]).integers(2**31))
    return optuna_study.ask(past, optuna.samplers.TPESampler(seed=source, **TPE))
