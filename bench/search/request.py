"""What a user asks of `bench tune`, from the command line or from Python."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.errors import UserError, nearest
from bench.scheduling.request import Request
from bench.search.budget import Limits
from bench.search.plan import FOLDER, Search, make_search, with_settings
from bench.search.suggest import ALGORITHMS
from bench.suite.methods import METHODS
from bench.validation import at_least

OF_THE_DATA = ("dataset.", "partition.", "model.")
UNITS = {"s": 1, "m": 60, "h": 3600}
ALL = "all"


@dataclass(frozen=True)
class TuneRequest(Request):
    """A suite whose methods are tuned, and the budget and the kind of search for each of them."""

    methods: Sequence[str] = (ALL,)
    """Their names, or only "all": every method of the suite."""
    space: str = "wide"
    """`paper` or `wide`."""
    trials: int = 20
    """Trials per method, including the default."""
    budget: str = "trials"
    """`trials`, or `rounds`: what early stops save goes into further trials."""
    search: str = "optuna"
    """`optuna`, `random` or `grid`."""
    scheduler: str = "asha"
    """`asha` or `none`."""
    seeds: int = 1
    """Seeds per configuration; its score is their mean."""
    seed: int = 0
    """Seed of the search itself."""
    sweeps: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Dotted key → values to choose from, in place of the search space's."""
    time_budget: str | None = None
    """For all searches together, such as 90s, 30m or 2h."""
    max_failures: int = 5
    """Failures of one kind that end a search."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value, known in (
            ("--space", self.space, ("paper", "wide")),
            ("--search", self.search, ALGORITHMS),
            ("--scheduler", self.scheduler, ("asha", "none")),
            ("--budget", self.budget, ("trials", "rounds")),
        ):
            if value not in known:
                raise UserError(f"unknown {name} '{value}'; {nearest(value, known)}")
        at_least(1, trials=self.trials, seeds=self.seeds, max_failures=self.max_failures)
        at_least(0, seed=self.seed)
        if not self.methods:
            raise UserError("--method is empty; give a name, several separated by commas, or all")
        self.seconds()

    @property
    def place(self) -> Path:
        return self.out / FOLDER / self.load_suite().suite

    def seconds(self) -> float | None:
        """The time budget in seconds; None: no limit."""
        if self.time_budget is None:
            return None
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", self.time_budget)
        if not match or not float(match[1]):
            raise UserError(
                f"--time-budget {self.time_budget}: give a number and s, m or h, such as 90s or 2h"
            )
        return float(match[1]) * UNITS[match[2]]

    def limits(self) -> Limits:
        return Limits(self.trials, self.budget == "rounds", self.max_failures)

    def searches(self) -> list[Search]:
        """One search per method."""
        suite = self.load_suite().resolved(METHODS.resolve)
        names = list(dict.fromkeys(entry.name for entry in suite.methods))
        if list(self.methods) != [ALL]:
            names = [METHODS.resolve(name) for name in self.methods]
            for name in names:
                METHODS.load(name)
            suite = suite.with_methods(names)
        suite = suite.model_copy(update={"seeds": self.seeds})
        settings = self.settings()
        suite = suite.changed(settings) if settings else suite
        _check_sweeps(self.sweeps, names)
        of_data = {key: values for key, values in self.sweeps.items() if key.startswith(OF_THE_DATA)}
        suite = with_settings(suite, of_data)
        how = (self.space, self.search, self.scheduler, self.seed, self.sweeps)
        places = (self.out.absolute(), self.data_root)
        return [make_search(suite, name, *how, *places) for name in names]


def _check_sweeps(sweeps: Mapping[str, Sequence[Any]], methods: Sequence[str]) -> None:
    beginnings = ["training.optimiser.", *OF_THE_DATA, *(f"{method}." for method in methods)]
    for key, values in sweeps.items():
        if not key.startswith(tuple(beginnings)):
            raise UserError(f"--sweep {key}: the key must begin with one of {', '.join(beginnings)}")
        if len(values) < 2:
            raise UserError(f"--sweep {key}: give two values or more; for one use --set")
