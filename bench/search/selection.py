"""Which configuration of a search is best, and on how many seeds that is decided (`--seeds auto`).

All trials run with one seed. Where validation is small, their scores differ by chance: if the standard error
of a score exceeds the spread of the best quarter's scores, the best quarter and the default run with one seed
more, until the standard error of their means is within the spread of these means, or after five seeds. The
best mean is chosen. The rule is the same for all methods, and what it decides follows from the records of the
cells, so that a kill changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance

from bench.records.cell_folder import CellFolder
from bench.records.schema import finite
from bench.search.halving import DEFAULT
from bench.search.journal import Trial
from bench.search.plan import Search
from bench.suite.planning import PlannedCell
from bench.text import counted

QUARTER = 4
"""One trial in this many is compared on further seeds."""
FEWEST = 3
"""At least this many trials are."""
MOST_SEEDS = 5
RULE = (
    f"1, and up to {MOST_SEEDS} for the best quarter and the default, until the standard error of a score is "
    "within the spread of the best quarter"
)


@dataclass(frozen=True)
class Candidate:
    """A trial that ran all rounds, and the mean of its scores over the seeds."""

    trial: Trial
    validation: float
    by_setting: Mapping[str, float]
    """Setting → its mean, where there are several settings."""


@dataclass(frozen=True)
class Selection:
    candidates: Sequence[Candidate]
    """Best first; all have run with the same seeds."""
    seeds: int
    standard_error: float
    """Of a candidate's score."""
    spread: float
    """Between the best and the worst of the best quarter."""
    missing: Sequence[PlannedCell] = ()
    """What has to be run with one seed more before the choice stands."""
    failed: str = ""
    """Why the default has no score with one seed more, if it failed."""

    @property
    def stands(self) -> bool:
        return not self.missing and not self.failed


def best_first(trials: Iterable[Trial]) -> list[Candidate]:
    """The trials that ran all rounds, best validation first; the earlier one where two are equal."""
    found = [
        Candidate(trial, trial.validation, trial.by_setting)
        for trial in trials
        if trial.outcome == "finished" and trial.validation is not None
    ]
    return _sorted(found)


def standard_error(scores: Sequence[Sequence[float]], samples: float) -> float:
    """Of a mean over seeds: `scores` are those of each configuration by seed, on this number of samples each.

    Each seed holds out other samples, so the variance between seeds contains the binomial one. The larger of
    both is taken, since the former is estimated from few seeds, and unknown from one.
    """
    seeds = len(scores[0])
    accuracy = fmean(map(fmean, scores))
    binomial = accuracy * (1 - accuracy) / samples
    between = fmean(map(variance, scores)) if seeds > 1 else 0.0
    return math.sqrt(max(binomial, between, 0.0) / seeds)


def effective_samples(held_out: Sequence[Sequence[int]]) -> float:
    """The samples of one pool whose accuracy varies as much as the mean over clients and then over settings.

    `held_out` has the sizes of the clients' held-out samples, setting by setting.
    """
    inverse = [sum(1 / size for size in sizes) / len(sizes) ** 2 for sizes in held_out]
    return len(inverse) ** 2 / sum(inverse)


def select(search: Search, trials: Sequence[Trial], samples: float, auto: bool) -> Selection | None:
    """What is chosen among these trials; None as long as the default has no score."""
    ranking = best_first(trials)
    default = next((each for each in ranking if each.trial.number == DEFAULT), None)
    if default is None:
        return None
    best = ranking[: max(FEWEST, math.ceil(len(trials) / QUARTER))]
    quarter = {each.trial.number for each in best}
    finalists = [each.trial for each in (best if default in best else [*best, default])]
    scores = {each.number: [each.validation or 0.0] for each in finalists}
    by_setting = {each.number: [each.by_setting] for each in finalists}
    for seeds in range(1, MOST_SEEDS + 1):
        of_quarter = [found for number, found in scores.items() if number in quarter]
        means = [fmean(found) for found in of_quarter]
        error, spread = standard_error(of_quarter, samples), max(means) - min(means)
        candidates = _sorted(
            Candidate(each, fmean(scores[each.number]), _mean(by_setting[each.number])) for each in finalists
        )
        found = Selection(candidates if seeds > 1 else ranking, seeds, error, spread)
        if not auto or seeds == MOST_SEEDS or len(finalists) == 1 or error <= spread:
            break
        cells = {each.number: cells_at(search, each, seed=seeds) for each in finalists}
        missing = [cell for each in cells.values() for cell in each if not _ended(search, cell)]
        failures = {number: _failure(search, each) for number, each in cells.items()}
        if missing or failures[DEFAULT]:
            return replace(found, missing=missing, failed=failures[DEFAULT])
        finalists = [each for each in finalists if not failures[each.number]]
        for each in finalists:
            new = {cell.variant: _score(search, cell) for cell in cells[each.number]}
            scores[each.number].append(fmean(new.values()))
            by_setting[each.number].append(new)
        scores = {each.number: scores[each.number] for each in finalists}
        quarter = (quarter & scores.keys()) or {DEFAULT}
    return found


def cells_at(search: Search, trial: Trial, seed: int) -> list[PlannedCell]:
    """The cells of a trial with a seed that the search itself does not use, one per setting."""
    further = replace(search, suite=search.suite.model_copy(update={"seeds": seed + 1}))
    return [cell for cell in further.cells(trial.values) if cell.seed == seed]


def folder_of(search: Search, cell: PlannedCell) -> CellFolder:
    return CellFolder(search.directory / cell.directory)


def _sorted(candidates: Iterable[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda each: (-each.validation, each.trial.number))


def _ended(search: Search, cell: PlannedCell) -> bool:
    return folder_of(search, cell).end_file is not None


def _failure(search: Search, cells: Sequence[PlannedCell]) -> str:
    """Why cells failed, and with which seed; empty if they did not."""
    failures = {cell.seed: folder_of(search, cell).failure() for cell in cells if not _is_done(search, cell)}
    return next((f"seed {seed}: {reason}" for seed, reason in failures.items() if reason), "")


def _is_done(search: Search, cell: PlannedCell) -> bool:
    return folder_of(search, cell).is_done


def _score(search: Search, cell: PlannedCell) -> float:
    """At the last round."""
    result = folder_of(search, cell).result()
    return (finite(result.final.validation) if result else None) or 0.0


def _mean(by_setting: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Setting → mean over the seeds; empty where there is only one setting."""
    return {setting: fmean(each[setting] for each in by_setting) for setting in by_setting[0]}


def in_words(selection: Selection) -> str:
    """The seeds of the choice, and why these are enough or not."""
    found = f"{100 * selection.standard_error:.2f}", f"{100 * selection.spread:.2f}"
    relation = "within" if selection.standard_error <= selection.spread else "above"
    return (
        f"on {counted(selection.seeds, 'seed')} a score has a standard error of {found[0]} points, "
        f"{relation} the spread of the best quarter, {found[1]} points"
    )
