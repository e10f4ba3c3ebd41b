"""One setting for all suites: the configuration of a row that is best on average over several suites.

The same configurations are tried in every suite: drawn at random from what the row's search spaces have in
common, without early stops. A score is divided by the best one that any row reached in the same suite, and
the mean over the suites decides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from bench.errors import UserError
from bench.observer import Observer
from bench.records.files import write_atomically
from bench.records.provenance import commit
from bench.search.plan import Search, searches_of
from bench.search.request import TuneRequest
from bench.search.tune import TuneOutcome, dry_run, tune
from bench.suite.model import Suite
from bench.suite.rows import file_name_of, label_of
from bench.suite.sweep_cells import with_values
from bench.suite.yaml_files import read_mapping
from bench.validation import validated

FOLDER = "shared"
"""Of the outcome, below the folder of tuned hyperparameters."""
SCHEMA = 1


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OnSuite(_Section):
    """What the shared configuration reaches in one suite."""

    version: int
    validation: float
    normalised: float
    """Divided by the best validation accuracy that any row reached in the suite."""
    own_default: float
    """Validation accuracy with the suite's own values."""
    own_best: float
    """The best of the same trials in this suite alone."""
    settings: list[str]
    """Digests of the data, partition, model and training."""
    data_checksum: str


class SharedTuned(_Section):
    """`tuned/shared/ROW.yaml`."""

    schema_version: int = SCHEMA
    row: str
    method: str
    selected_on: str = "validation"
    set: dict[str, Any]
    score: float
    """Mean over the suites of the normalised validation accuracy."""
    suites: dict[str, OnSuite]
    trials: int
    """The budget of every row in every suite."""
    rounds: dict[str, int]
    """Suite → rounds of a trial."""
    seeds: int
    seed: int
    space: str
    commit: str


@dataclass(frozen=True)
class SharedOutcome:
    """What a request with several suites has come to."""

    chosen: Sequence[SharedTuned]
    left_out: Sequence[str]
    """Rows that not all suites have."""
    incomplete: Sequence[str]
    explore: str
    files: Sequence[Path]


def tune_shared(requests: Sequence[TuneRequest], observer: Observer) -> SharedOutcome:
    """Try the same configurations in every suite, and choose one per row for all of them.

    The requests differ in their suites only.
    """
    request = requests[0]
    requests, searches, left_out = shared_searches(requests)
    for row in left_out:
        observer.say(f"note: {row} is not in every suite, so it has no shared configuration")
    outcomes = [tune(each, observer, own) for each, own in zip(requests, searches, strict=True)]
    incomplete = [problem for outcome in outcomes for problem in outcome.incomplete]
    chosen: list[SharedTuned] = []
    files: list[Path] = []
    if not incomplete:
        names = [search.file_name for search in searches[0]]
        chosen = _choose(request, outcomes)
        files = [write_shared(request.tuned_dir, *each) for each in zip(names, chosen, strict=True)]
    return SharedOutcome(chosen, left_out, incomplete, outcomes[0].explore, files)


def preview_shared(requests: Sequence[TuneRequest], observer: Observer) -> None:
    """Check everything that the searches check, and say what they would do."""
    shared, searches, left_out = shared_searches(requests)
    for row in left_out:
        observer.say(f"note: {row} is not in every suite, so it has no shared configuration")
    for each, own in zip(shared, searches, strict=True):
        dry_run(each, observer, own)


def shared_searches(
    requests: Sequence[TuneRequest],
) -> tuple[list[TuneRequest], list[list[Search]], list[str]]:
    """The request of each suite, its searches in the same order of rows, and the rows that are left out."""
    requests = [
        replace(
            each,
            shared=False,
            search="random",
            scheduler="none",
            seeds=each.first_seeds,
            tuned_dir=each.tuned_dir / FOLDER,
        )
        for each in requests
    ]
    if len(requests) < 2:
        raise UserError("--shared chooses one configuration for several suites; give them as --suite A,B")
    by_row = [{search.row: search for search in searches_of(each)} for each in requests]
    rows = [row for row in by_row[0] if all(row in found for found in by_row)]
    if not rows:
        raise UserError("--shared: the suites have no row in common; choose rows with --methods")
    searches: list[list[Search]] = [[] for _ in requests]
    for row in rows:
        spaces = [found[row].space for found in by_row]
        common = [
            key
            for key, domain in spaces[0].domains.items()
            if all(s.domains.get(key) == domain for s in spaces)
        ]
        for own, found in zip(searches, by_row, strict=True):
            search = found[row]
            own.append(replace(search, space=search.space.limited_to(common), keys_chosen=True))
    left_out = dict.fromkeys(row for found in by_row for row in found if row not in rows)
    return requests, searches, list(left_out)


def _choose(request: TuneRequest, outcomes: Sequence[TuneOutcome]) -> list[SharedTuned]:
    scores = [[_scores(search) for search in outcome.searches] for outcome in outcomes]
    best = [max(score for row in rows for score in row.values()) for rows in scores]
    chosen = []
    for place in range(len(scores[0])):
        by_suite = [rows[place] for rows in scores]
        candidates = [key for key in by_suite[0] if all(key in found for found in by_suite)]
        search = outcomes[0].searches[place]
        if not candidates:
            raise UserError(f"{search.row}: no configuration was finished in every suite; give more --trials")
        parts = {
            key: [found[key] / top for found, top in zip(by_suite, best, strict=True)] for key in candidates
        }
        winner = max(candidates, key=lambda key: fmean(parts[key]))
        chosen.append(_outcome(request, outcomes, place, winner, by_suite, parts[winner]))
    return chosen


def _outcome(
    request: TuneRequest,
    outcomes: Sequence[TuneOutcome],
    place: int,
    winner: str,
    by_suite: Sequence[Mapping[str, float]],
    normalised: Sequence[float],
) -> SharedTuned:
    suites, rounds = {}, {}
    for outcome, scores, share in zip(outcomes, by_suite, normalised, strict=True):
        search, tuned = outcome.searches[place], outcome.tuned[place]
        rounds[search.suite.suite] = search.rounds
        suites[search.suite.suite] = OnSuite(
            version=search.suite.version,
            validation=scores[winner],
            normalised=share,
            own_default=tuned.default.validation,
            own_best=max(scores.values()),
            settings=tuned.settings,
            data_checksum=tuned.data_checksum,
        )
    first = outcomes[0].searches[place]
    return SharedTuned(
        row=first.row,
        method=first.method,
        set=json.loads(winner),
        score=fmean(normalised),
        suites=suites,
        trials=request.trials,
        rounds=rounds,
        seeds=request.first_seeds,
        seed=request.seed,
        space=request.space,
        commit=commit(),
    )


def _scores(search: Search) -> dict[str, float]:
    """Configuration, as text → validation accuracy, of the trials that ran all rounds."""
    return {
        json.dumps(search.space.default | trial.values, sort_keys=True): trial.validation
        for trial in search.journal().trials
        if trial.outcome == "finished" and trial.validation is not None
    }


def write_shared(folder: Path, name: str, tuned: SharedTuned) -> Path:
    """Write the file of a row; `name` as `file_name_of` gives it."""
    file = folder / FOLDER / f"{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, yaml.safe_dump(tuned.model_dump(mode="json"), sort_keys=False, allow_unicode=True))
    return file


def load_shared(folder: Path, name: str, row: str) -> SharedTuned:
    """What was chosen for a row of all suites."""
    file = folder / FOLDER / f"{name}.yaml"
    if not file.is_file():
        raise UserError(
            f"--tuned shared: {row} has no {file}; run `bench tune --suite A,B --shared`, or leave it out "
            "with --methods"
        )
    raw = read_mapping(file, "what `bench tune --shared` has found; run it again to write the file again")
    return validated(SharedTuned, raw, str(file))


def shared_suite(suite: Suite, folder: Path) -> tuple[Suite, dict[str, Any]]:
    """The suite with the shared configuration of every row, and what a table must say about the choice."""
    found = [load_shared(folder, file_name_of(entry), label_of(entry)) for entry in suite.methods]
    rows = [with_values(entry, tuned.set, suite) for entry, tuned in zip(suite.methods, found, strict=True)]
    first = found[0]
    for tuned in found[1:]:
        if (tuned.trials, tuned.seeds, list(tuned.suites)) != (first.trials, first.seeds, list(first.suites)):
            raise UserError(
                f"--tuned shared: {first.row} and {tuned.row} were chosen with different budgets or suites; "
                "run `bench tune --shared` so that all have the same"
            )
    names = [entry.label or entry.name for entry in suite.methods]
    record = {
        "trials": first.trials,
        "seeds": first.seeds,
        "search": "random",
        "space": first.space,
        "suites": ", ".join(first.suites),
        "selected_on": first.selected_on,
        "methods": {name: _record(tuned, suite.suite) for name, tuned in zip(names, found, strict=True)},
    }
    return suite.model_copy(update={"methods": tuple(rows)}), record


def _record(tuned: SharedTuned, suite: str) -> dict[str, Any]:
    here = tuned.suites.get(suite)
    return {
        "set": tuned.set,
        "shared_by": list(tuned.suites),
        "validation": here.validation if here else None,
        "default_validation": here.own_default if here else None,
        "settings": here.settings if here else [],
        "data_checksum": here.data_checksum if here else None,
    }
