"""What a user asks of `bench tune`, from the command line or from Python."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.engine.conditions import Conditions
from bench.errors import UserError, nearest
from bench.records.provenance import commit
from bench.search.budget import Limits
from bench.search.plan import Search, make_search, with_settings
from bench.search.suggestions import ALGORITHMS
from bench.suite.loading import load_suite
from bench.suite.methods import METHODS
from bench.suite.model import Suite
from bench.validation import above_zero, at_least, gpu_share

if TYPE_CHECKING:
    from bench.scheduling.resources import Resources

OF_THE_DATA = ("dataset.", "partition.", "model.")
UNITS = {"s": 1, "m": 60, "h": 3600}
ALL = "all"


@dataclass(frozen=True)
class TuneRequest:
    """A suite, the methods to tune, the budget of each, and the resources to search with."""

    suite: str | Suite
    """A suite's name, the path of its file, or the suite itself."""
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
    rounds: int | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Other values at dotted keys of the suite, such as {"training.epochs": 1}."""
    sweeps: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Dotted key → values to choose from, in place of the search space's."""
    time_budget: str | None = None
    """For all searches together, such as 90s, 30m or 2h."""
    max_failures: int = 5
    cpus_per_trial: float = 1
    gpus_per_trial: float | None = None
    max_concurrent: int | None = None
    address: str | None = None
    tracking_uri: str | None = None
    checkpoint_every: float = 15
    data_root: Path | None = None
    out: Path = Path("runs")
    tuned_dir: Path = Path("tuned")

    def __post_init__(self) -> None:
        for name, value, known in (
            ("--space", self.space, ("paper", "wide")),
            ("--search", self.search, ALGORITHMS),
            ("--scheduler", self.scheduler, ("asha", "none")),
            ("--budget", self.budget, ("trials", "rounds")),
        ):
            if value not in known:
                raise UserError(f"unknown {name} '{value}'; {nearest(value, known)}")
        at_least(
            1,
            trials=self.trials,
            seeds=self.seeds,
            rounds=self.rounds,
            max_failures=self.max_failures,
            max_concurrent=self.max_concurrent,
        )
        at_least(0, seed=self.seed)
        above_zero(cpus_per_trial=self.cpus_per_trial, checkpoint_every=self.checkpoint_every)
        gpu_share(self.gpus_per_trial)
        if not self.methods:
            raise UserError("--method is empty; give a name, several separated by commas, or all")
        self.seconds()

    def load_suite(self) -> Suite:
        return self.suite if isinstance(self.suite, Suite) else load_suite(self.suite)

    def settings(self) -> dict[str, Any]:
        """The keys of the suite that this request changes."""
        rounds = {"training.rounds": self.rounds} if self.rounds is not None else {}
        return dict(self.overrides) | rounds

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

    def limits(self, seconds: float | None = None) -> Limits:
        return Limits(self.trials, self.budget == "rounds", self.max_failures, seconds)

    def conditions(self) -> Conditions:
        return Conditions(
            data_root=self.data_root.absolute() if self.data_root else None,
            checkpoint_seconds=self.checkpoint_every,
            commit=commit(),
        )

    def resources(self) -> Resources:
        """What a trial may use; imports Ray."""
        from bench.scheduling.resources import Resources

        return Resources(self.cpus_per_trial, self.gpus_per_trial, max_concurrent=self.max_concurrent)

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
