"""What a user asks of `bench tune`, from the command line or from Python."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from bench.errors import UserError
from bench.request import Option, at_least
from bench.search.budget import Limits
from bench.trials.request import ComputingRequest, SuiteRequest

UNITS = {"s": 1, "m": 60, "h": 3600}
ALL = "all"
FOLDER = "tune"
"""Of the searches, below the folder of the runs."""
AUTO: Literal["auto"] = "auto"
SEEDS = (
    "Seeds per configuration, whose mean is its score; auto: one, and up to five for the best quarter until "
    "their standard error is below their spread."
)


@dataclass(frozen=True, kw_only=True)
class SearchOptions(ComputingRequest):
    """The kind and the budget of searches."""

    trials: Annotated[int, Option("Trials per method, including the default.")] = 20
    space: Annotated[Literal["wide", "paper"], Option("Search space.")] = "wide"
    search: Annotated[Literal["optuna", "random", "grid"], Option("How configurations are chosen.")] = (
        "optuna"
    )
    scheduler: Annotated[Literal["asha", "none"], Option("What stops weak configurations early.")] = "asha"
    time_budget: Annotated[str | None, Option("For all searches together: 90s, 30m, 2h.")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, trials=self.trials)
        self.seconds()

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


@dataclass(frozen=True, kw_only=True)
class TuneRequest(SuiteRequest, SearchOptions):
    """A suite whose methods are tuned, and what each of the searches may spend."""

    methods: Annotated[
        Sequence[str], Option("One method, several as a,b,c, or all: every method of the suite.")
    ] = (ALL,)
    budget: Annotated[
        Literal["trials", "rounds"],
        Option("What is limited; with rounds, what early stops save goes into further trials."),
    ] = "trials"
    seeds: Annotated[int | Literal["auto"], Option(SEEDS)] = AUTO
    seed: Annotated[int, Option("Seed of the search itself.")] = 0
    max_failures: Annotated[int, Option("Failures of one kind that end a search.")] = 5
    widen: Annotated[
        bool,
        Option(
            "Continue searches whose best value is at an end of its range: a decade or the range's width "
            "further, with --trials more trials."
        ),
    ] = False

    shared: Annotated[
        bool,
        Option(
            "One configuration per row for all suites (--suite A,B): the same random trials in each of them, "
            "the best mean over the suites."
        ),
    ] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shared and self.widen:
            raise UserError("--widen continues the searches of one suite; leave out --shared or --widen")
        at_least(1, seeds=self.first_seeds, max_failures=self.max_failures)
        at_least(0, seed=self.seed)
        if not self.methods:
            raise UserError("--methods is empty; give a name, several separated by commas, or all")

    @property
    def folder(self) -> Path:
        return self.out / FOLDER / self.loaded.suite

    def limits(self) -> Limits:
        return Limits(self.trials, self.budget == "rounds", self.max_failures, self.seeds == AUTO)

    @property
    def first_seeds(self) -> int:
        """The seeds of every configuration; the best ones may get more."""
        return first_seeds(self.seeds)


def first_seeds(seeds: int | Literal["auto"]) -> int:
    """The seeds of every configuration, by the option."""
    if seeds == AUTO:
        return 1
    if not isinstance(seeds, int):
        raise UserError(f"seeds {seeds!r}: give a number, or {AUTO}")
    return seeds
