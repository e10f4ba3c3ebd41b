"""The outcome of searches: `tuned/SUITE/ROW.yaml`, and a suite that uses them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from bench.config.cell import CellConfig
from bench.errors import UserError
from bench.records.files import write_atomically
from bench.suite.loading import SUITES, as_option
from bench.suite.model import MethodEntry, Suite
from bench.suite.yaml_files import read_mapping
from bench.validation import validated

SCHEMA = 1
FOLDER = Path("tuned")
SHIPPED = SUITES / "tuned"
"""Hyperparameters that ship with a suite, valid for its version and for the space they were chosen in."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Scored(_Section):
    """A configuration that ran all rounds."""

    trial: int
    validation: float
    set: dict[str, Any]
    """What differs from the suite: dotted keys of the row's settings."""
    by_setting: dict[str, float] = Field(default_factory=dict, exclude_if=lambda scores: not scores)
    """Setting → score, where configurations were compared under several settings."""


class Spent(_Section):
    trials: int
    """The budget of every method."""
    unit: str
    """`trials`, or `rounds` if early stops paid for more trials."""
    rounds: int
    """The rounds of a trial that is not stopped."""
    seeds: int | Literal["auto"]
    """Of every configuration; `auto`: one, and more for the best ones (see `Selected`)."""
    complete: bool
    finished: int
    stopped: int
    failed: int
    rounds_spent: int
    """The sum over all trials and seeds."""


class Selected(_Section):
    """On how many seeds the best configurations were compared, where their number was not given."""

    seeds: int
    standard_error: float
    """Of the score of a configuration: of its mean over the seeds."""
    spread: float
    """Between the best and the worst score of the best quarter."""


class ToTarget(_Section):
    """What the best configuration needs to reach the validation accuracy of tuned FedAvg."""

    accuracy: float
    rounds: int | None = None
    """The first measured round that reaches it; None: none does."""
    megabytes: float | None = None
    """Sent up and down by all clients until then: the mean over seeds and settings, in 10⁶ bytes."""


class How(_Section):
    """How the search was made."""

    search: str
    scheduler: str
    seed: int
    space: str
    sweep: dict[str, list[Any]]
    """Keys whose values were given on the command line."""
    keys: list[str] | None = None
    """The keys that were searched, where the request chose them; None: all of the space."""
    space_hash: str
    """Of the space that the search began with."""
    widened: dict[str, list[float]] = Field(default={}, exclude_if=lambda ranges: not ranges)
    """Keys whose range was made wider during the search, and the range that they have since."""
    id: str
    """The identity of the search, at the end of its folder's name."""
    sampler: dict[str, Any] = {}
    """What drew the configurations, and its options."""
    versions: dict[str, str] = {}


class Tuned(_Section):
    schema_version: int = SCHEMA
    suite: str
    suite_version: int
    method: str
    row: str = ""
    """The label of the row; empty in files of older versions, in which a method has one row."""
    selected_on: str
    held_out: float
    """The share of every client's training data that validation means."""
    best: Scored
    default: Scored
    """On the same seeds as the best one."""
    at_bound: dict[str, str] = Field(default={}, exclude_if=lambda ends: not ends)
    """Keys whose best value lies at an end of its range, `lower` or `upper`: a better one may lie beyond."""
    runner_ups: list[Scored]
    budget: Spent
    selection: Selected | None = Field(default=None, exclude_if=lambda selected: selected is None)
    to_target: ToTarget | None = Field(default=None, exclude_if=lambda target: target is None)
    """None: FedAvg was not tuned with it."""
    how: How
    settings: list[str] = []
    """Digests of the data, partition, model and training that the configurations were compared with."""
    data_checksum: str
    commit: str


def file_of(folder: Path, suite: str, row: str) -> Path:
    """The file of a search's outcome; `row` as `file_name_of` gives it."""
    return folder / suite / f"{row}.yaml"


def found_file(folder: Path, suite: str, row: str) -> Path:
    """The user's own outcome of a search, or else the one that ships with the suite."""
    own, shipped = file_of(folder, suite, row), file_of(SHIPPED, suite, row)
    return shipped if shipped.is_file() and not own.is_file() else own


def found_files(folder: Path, suite: str = "") -> list[Path]:
    """All outcomes of searches, of one suite or of all; the user's own take precedence."""
    files = {
        file.relative_to(place): file
        for place in (SHIPPED, folder)
        for file in sorted(place.glob(f"{suite or '*'}/*.yaml"))
    }
    return [files[name] for name in sorted(files)]


def write_tuned(folder: Path, row: str, tuned: Tuned) -> Path:
    """Write the file of a search's outcome; `row` as `file_name_of` gives it."""
    file = file_of(folder, tuned.suite, row)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, yaml.safe_dump(tuned.model_dump(mode="json"), sort_keys=False, allow_unicode=True))
    return file


def load_tuned(file: Path) -> Tuned:
    raw = read_mapping(file, "what `bench tune` has found; run it again to write the file again")
    return validated(Tuned, raw, str(file))


def tuned_suite(suite: Suite, folder: Path, data_root: Path | None = None) -> tuple[Suite, dict[str, Any]]:
    """The suite with every row's chosen configuration, and what a table must say about the choice."""
    from bench.suite.rows import check_file_names
    from bench.suite.sweep_cells import with_values

    check_file_names(suite.methods)
    found = [_matching(suite, entry, folder, data_root) for entry in suite.methods]
    _refuse_unequal_budgets(found)
    rows = [
        with_values(entry, tuned.best.set, suite) for entry, tuned in zip(suite.methods, found, strict=True)
    ]
    names = [entry.label or entry.name for entry in suite.methods]
    return _of_rows(suite, rows), _for_the_record(dict(zip(names, found, strict=True)))


def side_by_side(tracks: Mapping[str, Suite], data_root: Path | None = None) -> Suite:
    """The rows of several versions of a suite, each followed by what the other versions make of it.

    The versions, by the end of their rows' labels, have the same methods in the same order. A row that is the
    same in an earlier version is left out.
    """
    from bench.suite.rows import label_of

    rows: list[MethodEntry] = []
    for position in range(len(next(iter(tracks.values())).methods)):
        known: set[str] = set()
        for ending, suite in tracks.items():
            row = suite.methods[position]
            if (cell := _first_cell(suite, row, data_root)) not in known:
                known.add(cell)
                label = f"{label_of(row)}{ending}" if ending else row.label
                rows.append(row.model_copy(update={"label": label}))
    return _of_rows(next(iter(tracks.values())), rows)


def _of_rows(suite: Suite, rows: Sequence[MethodEntry]) -> Suite:
    return suite.model_copy(update={"methods": tuple(rows)})


def _first_config(suite: Suite, row: MethodEntry, data_root: Path | None) -> CellConfig:
    """Of the row as it is without a sweep."""
    from bench.suite.planning import plan_cells

    return plan_cells(suite.model_copy(update={"methods": (row,), "sweep": ()}), data_root)[0].config


def _first_cell(suite: Suite, row: MethodEntry, data_root: Path | None) -> str:
    return _first_config(suite, row, data_root).cell_id


def _matching(suite: Suite, entry: MethodEntry, folder: Path, data_root: Path | None) -> Tuned:
    from bench.suite.rows import file_name_of, label_of

    row = label_of(entry)
    name = shlex.quote(entry.label or entry.name)
    again = f"run `bench tune --suite {as_option(suite.suite)} --methods {name}`"
    file = found_file(folder, suite.suite, file_name_of(entry))
    if not file.is_file():
        raise UserError(f"--tuned: {row} has no {file}; {again}, or leave it out with --methods")
    tuned = load_tuned(file)
    if tuned.suite_version != suite.version:
        raise UserError(
            f"{file} was made for version {tuned.suite_version} of suite '{suite.suite}', which is now at "
            f"{suite.version}; {again}"
        )
    if tuned.how.space_hash != _present_space(suite, entry, tuned, data_root):
        raise UserError(f"{file}: the search space '{tuned.how.space}' has changed since; {again}")
    if not tuned.budget.complete:
        raise UserError(f"{file} is of a search that has not spent its budget; {again} again to resume")
    return tuned


def _present_space(suite: Suite, entry: MethodEntry, tuned: Tuned, data_root: Path | None) -> str:
    from bench.search.space import search_space

    space = search_space(
        tuned.method, tuned.how.space, _first_config(suite, entry, data_root), tuned.how.sweep
    )
    return (space if tuned.how.keys is None else space.limited_to(tuned.how.keys)).digest


def _refuse_unequal_budgets(all_tuned: Sequence[Tuned]) -> None:
    first = all_tuned[0]
    for tuned in all_tuned[1:]:
        if _budget(tuned) != _budget(first):
            raise UserError(
                f"--tuned: {first.row or first.method} and {tuned.row or tuned.method} had different budgets "
                f"({_words(first)}; {_words(tuned)}); "
                f"run `bench tune --suite {as_option(first.suite)}` so that all have the same"
            )


def _budget(tuned: Tuned) -> dict[str, Any]:
    asked = tuned.budget.model_dump(include={"trials", "unit", "rounds", "seeds"})
    return asked | tuned.how.model_dump(include={"search", "scheduler", "space"})


def _words(tuned: Tuned) -> str:
    return ", ".join(f"{key} {value}" for key, value in _budget(tuned).items())


def _trials_of_its_own(spent: Spent) -> dict[str, int]:
    """A space may have fewer configurations than there are trials; where rounds count, any number is fair."""
    ran = spent.finished + spent.stopped + spent.failed
    return {"trials": ran} if spent.unit == "trials" and ran != spent.trials else {}


def _for_the_record(found: Mapping[str, Tuned]) -> dict[str, Any]:
    """The key `tuning` of a plan."""
    first = next(iter(found.values()))
    methods = {
        method: {
            "set": tuned.best.set,
            "validation": tuned.best.validation,
            "default_validation": tuned.default.validation,
            "rounds_spent": tuned.budget.rounds_spent,
            "settings": tuned.settings,
            "data_checksum": tuned.data_checksum,
            **_trials_of_its_own(tuned.budget),
            **_choice(tuned),
        }
        for method, tuned in found.items()
    }
    return {**_budget(first), "selected_on": first.selected_on, "methods": methods}


def _choice(tuned: Tuned) -> dict[str, Any]:
    """What a table says about the choice of one method, where there is something to say."""
    found = {
        "at_bound": tuned.at_bound,
        "widened": tuned.how.widened,
        "selection": tuned.selection.model_dump() if tuned.selection else None,
        "to_target": tuned.to_target.model_dump() if tuned.to_target else None,
    }
    return {key: value for key, value in found.items() if value}
