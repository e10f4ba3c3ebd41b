"""The outcome of searches: `tuned/SUITE/METHOD.yaml`, and a suite that uses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

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
DEFAULT = "(default)"
"""The end of the label of a row with a method's defaults, next to the row with tuned values."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Scored(_Section):
    """A configuration that ran all rounds."""

    trial: int
    validation: float
    set: dict[str, Any]
    """What differs from the suite: dotted keys of the method's settings."""


class Spent(_Section):
    trials: int
    """The budget of every method."""
    unit: str
    """`trials`, or `rounds` if early stops paid for more trials."""
    rounds: int
    """The rounds of a trial that is not stopped."""
    seeds: int
    complete: bool
    finished: int
    stopped: int
    failed: int
    rounds_spent: int
    """The sum over all trials and seeds."""


class How(_Section):
    """How the search was made."""

    search: str
    scheduler: str
    seed: int
    space: str
    sweep: dict[str, list[Any]]
    """Keys whose values were given on the command line."""
    space_hash: str
    id: str
    """The identity of the search, at the end of its folder's name."""


class Tuned(_Section):
    schema_version: int = SCHEMA
    suite: str
    suite_version: int
    method: str
    selected_on: str
    held_out: float
    """The share of every client's training data that validation means."""
    best: Scored
    default: Scored
    runner_ups: list[Scored]
    budget: Spent
    how: How
    settings: list[str] = []
    """Digests of the data, partition, model and training that the configurations were compared with."""
    data_checksum: str
    commit: str


def file_of(folder: Path, suite: str, method: str) -> Path:
    """The file of a search's outcome."""
    return folder / suite / f"{method}.yaml"


def found_file(folder: Path, suite: str, method: str) -> Path:
    """The user's own outcome of a search, or else the one that ships with the suite."""
    own, shipped = file_of(folder, suite, method), file_of(SHIPPED, suite, method)
    return shipped if shipped.is_file() and not own.is_file() else own


def found_files(folder: Path, suite: str = "") -> list[Path]:
    """All outcomes of searches, of one suite or of all; the user's own take precedence."""
    files = {
        file.relative_to(place): file
        for place in (SHIPPED, folder)
        for file in sorted(place.glob(f"{suite or '*'}/*.yaml"))
    }
    return [files[name] for name in sorted(files)]


def write_tuned(folder: Path, tuned: Tuned) -> Path:
    file = file_of(folder, tuned.suite, tuned.method)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, yaml.safe_dump(tuned.model_dump(mode="json"), sort_keys=False, allow_unicode=True))
    return file


def load_tuned(file: Path) -> Tuned:
    raw = read_mapping(file, "what `bench tune` has found; run it again to write the file again")
    return validated(Tuned, raw, str(file))


def tuned_suite(suite: Suite, folder: Path, data_root: Path | None = None) -> tuple[Suite, dict[str, Any]]:
    """The suite with every method's chosen configuration, and what a table must say about the choice."""
    found = {entry.name: _matching(suite, entry.name, folder, data_root) for entry in suite.methods}
    _refuse_unequal_budgets(list(found.values()))
    settings = {
        f"{method}.{key}": value for method, tuned in found.items() for key, value in tuned.best.set.items()
    }
    return suite.changed(settings) if settings else suite, _for_the_record(found)


def side_by_side(tuned: Suite, default: Suite, data_root: Path | None = None) -> tuple[Suite, frozenset[str]]:
    """The tuned rows, each followed by its defaults where these differ; and the labels of the latter rows.

    Both suites have the same methods in the same order.
    """
    from bench.suite.methods import METHODS

    rows: list[MethodEntry] = []
    untuned = set()
    for chosen, plain in zip(tuned.methods, default.methods, strict=True):
        rows.append(chosen)
        if _first_cell(tuned, chosen, data_root) != _first_cell(default, plain, data_root):
            label = f"{plain.label or METHODS.load(plain.name).label} {DEFAULT}"
            rows.append(plain.model_copy(update={"label": label}))
            untuned.add(label)
    return tuned.with_methods(rows), frozenset(untuned)


def _first_cell(suite: Suite, row: MethodEntry, data_root: Path | None) -> str:
    from bench.suite.planning import plan_cells

    return plan_cells(suite.with_methods([row]), data_root)[0].cell_id


def _matching(suite: Suite, method: str, folder: Path, data_root: Path | None) -> Tuned:
    again = f"run `bench tune --suite {as_option(suite.suite)} --method {method}`"
    file = found_file(folder, suite.suite, method)
    if len([entry for entry in suite.methods if entry.name == method]) > 1:
        raise UserError(f"--tuned: suite '{suite.suite}' has several rows of {method}; leave --tuned out")
    if not file.is_file():
        raise UserError(f"--tuned: {method} has no {file}; {again}, or leave it out with --methods")
    tuned = load_tuned(file)
    if tuned.suite_version != suite.version:
        raise UserError(
            f"{file} was made for version {tuned.suite_version} of suite '{suite.suite}', which is now at "
            f"{suite.version}; {again}"
        )
    if tuned.how.space_hash != _present_space(suite, tuned, data_root):
        raise UserError(f"{file}: the search space '{tuned.how.space}' has changed since; {again}")
    if not tuned.budget.complete:
        raise UserError(f"{file} is of a search that has not spent its budget; {again} again to resume")
    return tuned


def _present_space(suite: Suite, tuned: Tuned, data_root: Path | None) -> str:
    from bench.search.space import search_space
    from bench.suite.planning import plan_cells

    default = plan_cells(suite.with_methods([tuned.method]), data_root)[0].config
    return search_space(tuned.method, tuned.how.space, default, tuned.how.sweep).digest


def _refuse_unequal_budgets(all_tuned: Sequence[Tuned]) -> None:
    first = all_tuned[0]
    for tuned in all_tuned[1:]:
        if _budget(tuned) != _budget(first):
            raise UserError(
                f"--tuned: {first.method} and {tuned.method} had different budgets "
                f"({_words(first)}; {_words(tuned)}); "
                f"run `bench tune --suite {as_option(first.suite)} --method all` so that all have the same"
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
        }
        for method, tuned in found.items()
    }
    return {**_budget(first), "selected_on": first.selected_on, "methods": methods}
