"""`bench run`."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cli.checks import above_zero, at_least, gpu_share
from bench.cli.console import BenchConsole, make_console
from bench.engine.cell_run import Conditions
from bench.errors import UserError
from bench.records.files import check_writable
from bench.records.provenance import commit
from bench.runs.drive import Plan, check_before_start, failures, make_plan, run, write_reports
from bench.runs.preview import describe
from bench.suite.loading import load_suite
from bench.suite.methods import METHODS
from bench.suite.model import Suite
from bench.suite.overrides import parse_assignment
from bench.tracking.tracker import Tracker, TrackingError


@dataclass(frozen=True)
class RunOptions:
    suite: str
    methods: list[str] | None
    seeds: int | None
    rounds: int | None
    encoder: str | None
    assignments: list[str]
    executor: str
    hosts: int | None
    cpus_per_trial: float
    gpus_per_trial: float | None
    max_concurrent: int | None
    address: str | None
    tracking_uri: str | None
    checkpoint_every: float
    data_root: Path | None
    out: Path
    dry_run: bool
    tuned: bool
    tuned_dir: Path

    def settings(self) -> dict[str, Any]:
        """The keys of the suite that this command changes."""
        changes = dict(parse_assignment(text) for text in self.assignments)
        if self.rounds is not None:
            changes["training.rounds"] = self.rounds
        if self.encoder is not None:
            changes["encoder"] = self.encoder
        return changes

    def check(self) -> None:
        at_least(
            1, seeds=self.seeds, rounds=self.rounds, hosts=self.hosts, max_concurrent=self.max_concurrent
        )
        above_zero(cpus_per_trial=self.cpus_per_trial, checkpoint_every=self.checkpoint_every)
        gpu_share(self.gpus_per_trial)
        if self.methods is not None and not self.methods:
            raise UserError("--methods is empty; give names separated by commas, such as fedavg,fedlsa")

    def hosts_per_trial(self) -> int:
        """A trial needs a core beside those of its hosts; how many a cluster has is not known here."""
        few_cores = self.address is None and (os.cpu_count() or 1) <= 2
        return self.hosts or (1 if few_cores else 2)


def chosen_suite(options: RunOptions) -> tuple[Suite, dict[str, Any] | None]:
    """The suite as asked for, and how its hyperparameters were chosen if a search did."""
    suite = load_suite(options.suite)
    if options.methods:
        for name in options.methods:
            METHODS.load(name)
        suite = suite.with_methods(options.methods)
    if options.seeds is not None:
        suite = suite.model_copy(update={"seeds": options.seeds})
    tuning = None
    if options.tuned:
        from bench.search.tuned import tuned_suite

        suite, tuning = tuned_suite(suite, options.tuned_dir)
    settings = options.settings()
    return suite.changed(settings) if settings else suite, tuning


def run_suite(options: RunOptions) -> int:
    """Returns the exit code: 0 when all cells are there, 1 when some failed, 130 when stopped."""
    console = make_console()
    options.check()
    suite, tuning = chosen_suite(options)
    plan = make_plan(suite, options.out.absolute(), options.settings(), tuning)
    conditions = Conditions(
        executor=options.executor,
        hosts=options.hosts_per_trial(),
        data_root=options.data_root.absolute() if options.data_root else None,
        checkpoint_seconds=options.checkpoint_every,
        commit=commit(),
    )
    check_writable(plan.directory)
    first = check_before_start(plan, conditions)
    tracker = Tracker(options.tracking_uri, options.out.absolute())
    for line in describe(plan, conditions, first):
        console.say(line)
    if options.dry_run and options.address:
        console.say("time: not estimated for a cluster")
        return 0
    if options.dry_run:
        from bench.runs.estimates import estimate

        shares = options.cpus_per_trial, options.gpus_per_trial
        for line in estimate(plan, conditions, *shares, options.max_concurrent):
            console.say(line)
        return 0
    started = time.monotonic()
    try:
        _run(options, plan, conditions, tracker, console)
    except KeyboardInterrupt:
        console.say("\nstopped; nothing is lost: run the same command again to go on")
        return 130
    return _conclude(plan, tracker, console, time.monotonic() - started)


def _run(
    options: RunOptions, plan: Plan, conditions: Conditions, tracker: Tracker, console: BenchConsole
) -> None:
    resources = None
    if plan.pending:
        from bench.scheduling.trials import Resources

        resources = Resources(
            cpus=options.cpus_per_trial,
            gpus=options.gpus_per_trial,
            hosts=options.hosts_per_trial() if options.executor == "ray" else 0,
            max_concurrent=options.max_concurrent,
        )
    run(plan, conditions, resources, tracker, console, options.address)


def _conclude(plan: Plan, tracker: Tracker, console: BenchConsole, seconds: float) -> int:
    from bench.cli.report import print_tables

    files = write_reports(plan.directory)
    print_tables(plan.directory, console)
    failed = failures(plan)
    try:
        tracker.log_suite(plan.directory)
    except TrackingError as error:
        console.say(f"warning: the tables are not in MLflow: {error}")
    for directory, reason in failed.items():
        console.say(f"failed: {plan.directory / directory}: {reason}")
    console.say(f"finished in {seconds:.0f} s; files:")
    for file in files:
        console.say(f"  {file}")
    console.say(f"explore: {tracker.ui_command()}")
    if failed:
        console.say(
            f"{len(failed)} of {len(plan.cells)} cells failed; run the same command again to retry them"
        )
    return 1 if failed else 0
