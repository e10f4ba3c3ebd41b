"""What a search has found: the best configuration, the others, and what was spent on them."""

from __future__ import annotations

from collections.abc import Sequence

from bench.search.budget import Budget, Limits
from bench.search.journal import Journal, Trial
from bench.search.plan import Search
from bench.search.tuned import How, Scored, Spent, Tuned
from bench.suite.planning import plan_cells

RUNNER_UPS = 5


def outcome_of(search: Search, journal: Journal, limits: Limits, checksum: str, commit: str) -> Tuned | None:
    """None as long as the default has no score to compare with."""
    budget = Budget(search, limits)
    trials = budget.paid(journal)
    ranking = best_first(trials)
    default = next((trial for trial in ranking if trial.number == 0), None)
    if default is None:
        return None
    ends = [trial.outcome for trial in trials]
    return Tuned(
        suite=search.suite.suite,
        suite_version=search.suite.version,
        method=search.method,
        selected_on="validation",
        held_out=search.suite.training.validation,
        best=_scored(ranking[0]),
        default=_scored(default),
        runner_ups=[_scored(trial) for trial in ranking[1 : 1 + RUNNER_UPS]],
        budget=Spent(
            trials=limits.trials,
            unit="rounds" if limits.by_rounds else "trials",
            rounds=search.rounds,
            seeds=search.suite.seeds,
            complete=budget.complete(journal),
            finished=ends.count("finished"),
            stopped=ends.count("stopped"),
            failed=ends.count("failed"),
            rounds_spent=sum(trial.rounds for trial in trials),
        ),
        how=How(
            search=search.algorithm,
            scheduler=search.scheduler,
            seed=search.seed,
            space=search.space.name,
            sweep={key: list(values) for key, values in search.sweeps.items()},
            space_hash=search.space.digest,
            id=search.identity,
        ),
        settings=sorted({cell.config.setting for cell in plan_cells(search.suite, search.data_root)}),
        data_checksum=checksum,
        commit=commit,
    )


def best_first(trials: Sequence[Trial]) -> list[Trial]:
    """Those that ran all rounds, best on validation first, the earlier one where two are equal."""
    finished = [trial for trial in trials if trial.outcome == "finished"]
    return sorted(finished, key=lambda trial: (-(trial.validation or 0.0), trial.number))


def _scored(trial: Trial) -> Scored:
    assert trial.validation is not None
    return Scored(trial=trial.number, validation=trial.validation, set=trial.values)
