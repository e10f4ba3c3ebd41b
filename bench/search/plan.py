"""A planned search: one method of a suite, its space, and the cells of every configuration."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.config.cell import Evaluation, identity
from bench.errors import UserError
from bench.records.cell_folder import CellFolder
from bench.search.journal import Journal, Trial
from bench.search.optuna_study import OptunaStudy
from bench.search.request import ALL, FOLDER, TuneRequest
from bench.search.space import SearchSpace, Values, search_space
from bench.search.suggest import suggest
from bench.suite.methods import METHODS
from bench.suite.model import Suite, Variant
from bench.suite.planning import PlannedCell, plan_cells

OF_THE_DATA = ("dataset.", "partition.", "model.")
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
    """Keys whose values were given by the user instead of the method's search space."""
    out: Path
    data_root: Path | None = None

    @property
    def method(self) -> str:
        return self.suite.methods[0].name

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
                "space": self.space.digest,
                "algorithm": self.algorithm,
                "scheduler": self.scheduler,
                "seed": self.seed,
            }
        )

    @property
    def directory(self) -> Path:
        return self.out / FOLDER / self.suite.suite / f"{self.method}-{self.identity}"

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

    def history(self, trial: Trial) -> list[tuple[int, float]]:
        """Round → mean validation accuracy, from the cells' records."""
        return mean_history([folder.validations() for folder in self.folders(trial)])

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
    """One search per method."""
    suite = request.loaded.resolved(METHODS.resolve)
    names = list(dict.fromkeys(entry.name for entry in suite.methods))
    if list(request.methods) != [ALL]:
        names = [METHODS.resolve(name) for name in request.methods]
        for name in names:
            METHODS.load(name)
        suite = suite.with_methods(names)
    suite = suite.model_copy(update={"seeds": request.seeds})
    settings = request.settings()
    suite = suite.changed(settings) if settings else suite
    _check_sweeps(request.sweeps, names)
    of_data = {key: values for key, values in request.sweeps.items() if key.startswith(OF_THE_DATA)}
    suite = with_settings(suite, of_data)
    how = (request.space, request.search, request.scheduler, request.seed, request.sweeps)
    places = (request.out.absolute(), request.data_root)
    return [make_search(suite, name, *how, *places) for name in names]


def _check_sweeps(sweeps: Mapping[str, Sequence[Any]], methods: Sequence[str]) -> None:
    beginnings = ["training.optimiser.", *OF_THE_DATA, *(f"{method}." for method in methods)]
    for key, values in sweeps.items():
        if not key.startswith(tuple(beginnings)):
            raise UserError(f"--sweep {key}: the key must begin with one of {', '.join(beginnings)}")
        if len(values) < 2:
            raise UserError(f"--sweep {key}: give two values or more; for one use --set")


def make_search(
    suite: Suite,
    method: str,
    space: str,
    algorithm: str,
    scheduler: str,
    seed: int,
    sweeps: Mapping[str, Sequence[Any]],
    out: Path,
    data_root: Path | None = None,
) -> Search:
    """`suite` has the number of seeds and the settings of the search."""
    suite = suite.with_methods([method])
    if len(suite.methods) > 1:
        raise UserError(
            f"suite '{suite.suite}' has {len(suite.methods)} rows of {method}, which one search cannot tell "
            "apart; tune on a suite with one row a method"
        )
    for variant in suite.variants:
        if own := [key for key in variant.set if key.startswith(f"{method}.")]:
            raise UserError(
                f"variant '{variant.name}' of suite '{suite.suite}' sets {own[0]} itself, so there is "
                "nothing to tune; choose another suite"
            )
    if suite.training.validation == 0:
        suite = suite.changed({"training.validation": HELD_OUT})
    if suite.training.early_stop is not None:  # trials are stopped by their scheduler
        suite = suite.changed({"training.early_stop": None})
    default = plan_cells(suite, data_root)[0].config
    own_sweeps = dict(suite.methods[0].search) | {
        key.removeprefix(f"{method}.").removeprefix("training."): values
        for key, values in sweeps.items()
        if key.startswith((f"{method}.", "training."))
    }
    found = search_space(method, space, default, own_sweeps)
    if algorithm == "grid" and found.size is None:
        ranges = [key for key, domain in found.domains.items() if domain.kind not in ("choice", "int")]
        raise UserError(
            f"--search grid: {', '.join(ranges)} of {method} have ranges in the space '{space}'; "
            "use --space paper, --sweep KEY=A,B,C or another search"
        )
    return Search(suite, found, algorithm, scheduler, seed, own_sweeps, out, data_root)


def with_settings(suite: Suite, sweeps: Mapping[str, Sequence[Any]]) -> Suite:
    """The suite with a variant per value, so that every configuration is run under each of them."""
    for key, values in sweeps.items():
        if suite.variants:
            raise UserError(f"--sweep {key}: suite '{suite.suite}' already has settings")
        if len(sweeps) > 1:
            raise UserError(f"--sweep {key}: only one key of the data or the model can be swept at a time")
        variants = tuple(Variant(name=f"{key}={value}", set={key: value}) for value in values)
        suite = suite.model_copy(update={"variants": variants})
    return suite


def mean_history(cells: Sequence[Mapping[int, float]]) -> list[tuple[int, float]]:
    """Round → mean validation accuracy, of the rounds at which all cells were measured."""
    common = set.intersection(*(set(cell) for cell in cells)) if cells else ()
    return [(number, fmean(cell[number] for cell in cells)) for number in sorted(common)]
