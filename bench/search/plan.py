"""A planned search: one row of a suite, its space, and the cells of every configuration."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.config.cell import Evaluation, identity
from bench.errors import UserError
from bench.records.cell_folder import CellFolder
from bench.search.bounds import Ranges, with_ranges
from bench.search.journal import Journal, Trial
from bench.search.optuna_study import OptunaStudy
from bench.search.request import ALL, FOLDER, TuneRequest
from bench.search.space import SearchSpace, Values, search_space
from bench.search.suggest import suggest
from bench.suite.methods import METHODS, own_optimiser
from bench.suite.model import Suite
from bench.suite.overrides import address, is_about_rows
from bench.suite.planning import PlannedCell, plan_cells
from bench.suite.rows import check_file_names, file_name_of, label_of, with_rows
from bench.suite.sweep_cells import swept_keys, with_values

HELD_OUT = 0.2
"""The share of every client's training data that configurations are compared on."""
MEASUREMENTS = 8
"""About how many times a trial is measured."""


@dataclass(frozen=True)
class Search:
    suite: Suite
    """With this one method, and the seeds and settings (as variants) that a configuration is run under."""
    space: SearchSpace
    algorithm: str
    scheduler: str
    seed: int
    sweeps: Mapping[str, Sequence[Any]]
    """Keys whose values were given by the user or the suite instead of the method's search space."""
    out: Path
    data_root: Path | None = None
    keys_chosen: bool = False
    """Whether only some keys of the search space are searched, since others are set or not swept."""
    unwidened: SearchSpace | None = None
    """The space that the search began with, if its ranges were made wider since; None: they were not."""
    carried: int = 0
    """The number of trials before its ranges were made wider, which are not charged to the budget again."""

    @property
    def method(self) -> str:
        return self.suite.methods[0].name

    @cached_property
    def row(self) -> str:
        """The label of the row."""
        return label_of(self.suite.methods[0])

    @property
    def file_name(self) -> str:
        """What the folder and the file of the search begin with."""
        return file_name_of(self.suite.methods[0])

    @property
    def rounds(self) -> int:
        return self.suite.training.rounds

    @property
    def measured_every(self) -> int:
        """Rounds between two measurements."""
        return math.ceil(self.rounds / MEASUREMENTS)

    @cached_property
    def identity(self) -> str:
        """A hash of all that decides what is tried, but not of how many trials there are."""
        return identity(
            {
                "cells": [cell.cell_id for cell in self.cells({})],
                "space": (self.unwidened or self.space).digest,
                "algorithm": self.algorithm,
                "scheduler": self.scheduler,
                "seed": self.seed,
            }
        )

    @property
    def directory(self) -> Path:
        return self.out / FOLDER / self.suite.suite / f"{self.file_name}-{self.identity}"

    @cached_property
    def cost(self) -> int:
        """Rounds of a trial that is not stopped, in all of its cells together."""
        return self.rounds * len(self.cells({}))

    def cells(self, values: Values) -> list[PlannedCell]:
        """A configuration under every setting and seed, never measured on the test sets."""
        key = json.dumps(values, sort_keys=True)
        if key not in self._planned:
            suite = self.suite.changed({f"{self.method}.{key}": value for key, value in values.items()})
            evaluation = Evaluation(every=self.measured_every, personal=suite.evaluation.personal, test=False)
            self._planned[key] = [
                replace(cell, config=cell.config.replaced(evaluation=evaluation))
                for cell in plan_cells(suite, self.data_root)
            ]
        return self._planned[key]

    @cached_property
    def _planned(self) -> dict[str, list[PlannedCell]]:
        """Configuration → cells, since a search asks for the same ones many times."""
        return {}

    def folders(self, trial: Trial) -> list[CellFolder]:
        return [CellFolder(self.directory / cell.directory) for cell in self.cells(trial.values)]

    def journal(self) -> Journal:
        return Journal(self.directory / "trials.jsonl")

    def continued(self) -> Search:
        """The search with the ranges that its journal says."""
        journal = self.journal()
        return self.widened_to(journal.widened, journal.carried) if journal.widened else self

    def widened_to(self, ranges: Ranges, carried: int) -> Search:
        """The same search, which goes on in wider ranges after this number of trials."""
        first = self.unwidened or self.space
        return replace(self, space=with_ranges(self.space, ranges), unwidened=first, carried=carried)

    def history(self, trial: Trial) -> list[tuple[int, float]]:
        """Round → mean validation accuracy, from the cells' records."""
        return mean_history([folder.validations() for folder in self.folders(trial)])

    def histories(self, trial: Trial) -> dict[str, list[tuple[int, float]]]:
        """Setting → round and mean validation accuracy over the seeds."""
        by_setting: dict[str, list[dict[int, float]]] = {}
        for cell, folder in zip(self.cells(trial.values), self.folders(trial), strict=True):
            by_setting.setdefault(cell.variant, []).append(folder.validations())
        return {setting: mean_history(found) for setting, found in by_setting.items()}

    def scores(self, trial: Trial) -> dict[str, float]:
        """Setting → mean validation accuracy over the seeds, at the last round they were all measured."""
        histories = self.histories(trial).items()
        return {setting: history[-1][1] for setting, history in histories if history}

    def is_done(self, trial: Trial) -> bool:
        return all(folder.is_done for folder in self.folders(trial))

    def suggestion(
        self, number: int, past: Sequence[Trial], optuna_study: OptunaStudy | None = None
    ) -> Values | None:
        return suggest(self.algorithm, self.space, self.seed, number, past, optuna_study)

    def count(self) -> int | None:
        """The number of configurations, including the suite's own; None if infinite."""
        if self.space.size is None:
            return None
        known = bool(self.space.domains) and self.space.covers(self.space.default)
        return self.space.size + (0 if known or not self.space.domains else 1)


def searches_of(request: TuneRequest) -> list[Search]:
    """One search per row."""
    suite = request.loaded.resolved(METHODS.resolve)
    if list(request.methods) != [ALL]:
        suite = with_rows(suite, request.methods)
    check_file_names(suite.methods)
    suite = request.asked(suite.model_copy(update={"seeds": request.first_seeds}))
    how = (request.space, request.search, request.scheduler, request.seed)
    places = (request.out.absolute(), request.data_root)
    return [
        make_search(suite, position, *how, *places, fixed=tuple(request.settings())).continued()
        for position in range(len(suite.methods))
    ]


def make_search(
    suite: Suite,
    position: int,
    space: str,
    algorithm: str,
    scheduler: str,
    seed: int,
    out: Path,
    data_root: Path | None = None,
    fixed: Sequence[str] = (),
) -> Search:
    """The search of the row at this position.

    `suite` has the number of seeds, the settings and the sweep of the search. The swept keys of rows are the
    grid that is searched; without any, it is the method's search space. Keys that are set by the user
    (`fixed`) or by a variant of the suite are not searched.
    """
    keys = swept_keys(suite)
    within = keys.rows[position]
    grid: dict[str, list[Any]] = {}
    for swept in suite.sweep:
        for key in within.keys() & swept.keys():
            known = grid.setdefault(within[key], [])
            known += [value for value in swept[key] if value not in known]
    single = {key: values[0] for key, values in grid.items() if len(values) == 1}
    of_settings = [{key: swept[key] for key in swept if key in keys.settings} for swept in suite.sweep]
    entry = with_values(suite.methods[position], single, suite)
    set_by = [*fixed, *(key for variant in suite.variants for key in variant.set)]
    suite = suite.model_copy(
        update={"methods": (entry,), "sweep": tuple(each for each in of_settings if each)}
    )
    if suite.training.validation == 0:
        suite = suite.changed({"training.validation": HELD_OUT})
    if suite.training.early_stop is not None:  # trials are stopped by their scheduler
        suite = suite.changed({"training.early_stop": None})
    default = plan_cells(suite, data_root)[0].config
    sweeps = {**entry.search, **{key: values for key, values in grid.items() if key not in single}}
    found = search_space(entry.name, space, default, sweeps)
    if any(keys.rows):
        kept = set(grid) - set(single)
    else:
        kept = set(found.domains) - _set_keys(found.domains, set_by, suite)
    chosen = kept < set(found.domains)
    if chosen:
        found = found.limited_to(kept)
    if algorithm == "grid" and found.size is None:
        ranges = [key for key, domain in found.domains.items() if domain.kind not in ("choice", "int")]
        raise UserError(
            f"--search grid: {', '.join(ranges)} of {label_of(entry)} have ranges in the space '{space}'; "
            "use --space paper, --sweep KEY=A,B,C or another search"
        )
    return Search(suite, found, algorithm, scheduler, seed, sweeps, out, data_root, keys_chosen=chosen)


def _set_keys(searched: Collection[str], keys: Sequence[str], suite: Suite) -> set[str]:
    """Those of the searched keys of the suite's only row that are among the dotted keys, or inside one."""
    row = [suite.methods[0].model_dump(exclude_unset=True)]
    own = own_optimiser(row[0]["name"], row[0].get("set", {})) is not None
    within = [address(key, row).key for key in keys if is_about_rows(key, row)]
    within += [key.removeprefix("training.") for key in keys if key.startswith("training.") and not own]
    return {key for key in searched if any(f"{key}.".startswith(f"{fixed}.") for fixed in within)}


def mean_history(cells: Sequence[Mapping[int, float]]) -> list[tuple[int, float]]:
    """Round → mean validation accuracy, of the rounds at which all cells were measured."""
    common = set.intersection(*(set(cell) for cell in cells)) if cells else ()
    return [(number, fmean(cell[number] for cell in cells)) for number in sorted(common)]
