"""What a user asks of `bench study`, from the command line or from Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bench.errors import UserError
from bench.runs.request import RunRequest
from bench.search.request import ALL, TuneRequest
from bench.suite.loading import load_suite
from bench.suite.model import Suite


@dataclass(frozen=True)
class StudyRequest:
    """Suites, the methods to compare on them, the budget of each, and the resources to work with."""

    suites: Sequence[str | Suite]
    """Names of suites, paths of their files, or the suites themselves."""
    methods: Sequence[str] | None = None
    """Names or paths of files; None: those of each suite."""
    trials: int = 20
    """Trials per method and suite, including the default."""
    seeds: int = 5
    """Seeds of the tables."""
    rounds: int | None = None
    space: str = "wide"
    search: str = "optuna"
    scheduler: str = "asha"
    search_seeds: int = 1
    """Seeds per configuration of a search."""
    time_budget: str | None = None
    """For all searches of all suites together, such as 90s, 30m or 2h."""
    executor: str = "auto"
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
        if not self.suites:
            raise UserError("--suite is empty; give a name, or several separated by commas")
        names = [suite.suite for suite in self.loaded]
        if twice := [name for name in names if names.count(name) > 1]:
            raise UserError(f"--suite names '{twice[0]}' twice; give each suite once")
        for suite in self.loaded:  # the requests check what they are given
            self.tuning(suite)
            self.run(suite)

    @cached_property
    def loaded(self) -> Sequence[Suite]:
        return [each if isinstance(each, Suite) else load_suite(each) for each in self.suites]

    def seconds(self) -> float | None:
        """The time budget of all searches; None: no limit."""
        return self.tuning(self.loaded[0]).seconds()

    def tuning(self, suite: Suite, time_budget: str | None = None) -> TuneRequest:
        """The searches of one suite, all methods with the same budget."""
        return TuneRequest(
            suite=suite,
            methods=[ALL] if self.methods is None else self.methods,
            space=self.space,
            trials=self.trials,
            search=self.search,
            scheduler=self.scheduler,
            seeds=self.search_seeds,
            rounds=self.rounds,
            time_budget=time_budget or self.time_budget,
            cpus_per_trial=self.cpus_per_trial,
            gpus_per_trial=self.gpus_per_trial,
            max_concurrent=self.max_concurrent,
            address=self.address,
            tracking_uri=self.tracking_uri,
            checkpoint_every=self.checkpoint_every,
            data_root=self.data_root,
            out=self.out,
            tuned_dir=self.tuned_dir,
        )

    def run(self, suite: Suite, tuned: bool = True) -> RunRequest:
        """The run of one suite: tuned rows beside default rows, or the latter alone."""
        return RunRequest(
            suite=suite,
            methods=self.methods,
            seeds=self.seeds,
            rounds=self.rounds,
            tuned="both" if tuned else False,
            tuned_dir=self.tuned_dir,
            executor=self.executor,
            cpus_per_trial=self.cpus_per_trial,
            gpus_per_trial=self.gpus_per_trial,
            max_concurrent=self.max_concurrent,
            address=self.address,
            tracking_uri=self.tracking_uri,
            checkpoint_every=self.checkpoint_every,
            data_root=self.data_root,
            out=self.out,
        )
