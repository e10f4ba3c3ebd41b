"""What to try next: a function of the seed and the journal alone, so a kill changes nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.search.journal import Trial
from bench.search.space import SearchSpace, Values, rounded
from search_spaces.spaces import Distribution

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

ALGORITHMS = ("optuna", "random", "grid")
STARTUP = 5
"""Trials before TPE has seen enough; they are random."""
ATTEMPTS = 5
"""Of TPE at something that was not tried yet, before a draw decides."""


def suggest(
    algorithm: str, space: SearchSpace, seed: int, number: int, past: Sequence[Trial]
) -> Values | None:
    """The values of this trial, or None if there is nothing left to try. Trial 0 is the suite's own."""
    if number == 0:
        return {}
    if not space.domains:
        return None
    tried = {_key(space.default | trial.values) for trial in past}
    if algorithm == "optuna":
        draws = (_tpe(space, seed, number, attempt, past) for attempt in range(ATTEMPTS))
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


def _tpe(space: SearchSpace, seed: int, number: int, attempt: int, past: Sequence[Trial]) -> Values:
    import optuna

    source = int(np.random.default_rng([seed, number, attempt]).integers(2**31))
    study = study_of(space, past, optuna.samplers.TPESampler(seed=source, n_startup_trials=STARTUP))
    params = study.ask(fixed_distributions=_distributions(space)).params
    return {key: _decoded(domain, params[key]) for key, domain in space.domains.items()}


def study_of(
    space: SearchSpace, past: Sequence[Trial], sampler: optuna.samplers.BaseSampler | None = None
) -> optuna.Study:
    """The journal as an Optuna study; a trial outside of the space, as the default may be, is left out."""
    import optuna
    from optuna.trial import TrialState

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    states = {
        "finished": TrialState.COMPLETE,
        "stopped": TrialState.PRUNED,
        "failed": TrialState.FAIL,
        None: TrialState.RUNNING,
    }
    for trial in past:
        values = space.default | trial.values
        if not space.covers(values):
            continue
        measured = {} if trial.validation is None else {trial.rounds: trial.validation}
        study.add_trial(
            optuna.trial.create_trial(
                state=states[trial.outcome],
                value=trial.validation if trial.outcome == "finished" else None,
                params={key: _encoded(domain, values[key]) for key, domain in space.domains.items()},
                distributions=_distributions(space),
                intermediate_values=measured,
            )
        )
    return study


def _distributions(space: SearchSpace) -> dict[str, BaseDistribution]:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    def of(domain: Distribution) -> BaseDistribution:
        if domain.kind == "choice":
            return CategoricalDistribution(range(len(domain.values)))
        low, high = domain.values
        if domain.kind == "int":
            return IntDistribution(low, high)
        return FloatDistribution(low, high, log=domain.kind == "log_uniform")

    return {key: of(domain) for key, domain in space.domains.items()}


def _encoded(domain: Distribution, value: Any) -> Any:
    """Choices by their position, since Optuna takes no lists and mistakes True for 1."""
    return domain.values.index(value) if domain.kind == "choice" else value


def _decoded(domain: Distribution, value: Any) -> Any:
    if domain.kind == "choice":
        return domain.values[value]
    return value if domain.kind == "int" else rounded(value, domain)
