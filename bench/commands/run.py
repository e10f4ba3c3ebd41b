"""`bench run`."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cells import Conditions
from bench.config import Suite, load_suite, parse_assignment
from bench.console import BenchConsole, make_console
from bench.errors import UserError
from bench.methods_registry import METHODS
from bench.provenance import commit
from bench.running import (
    Plan,
    check_before_start,
    check_writable,
    describe,
    failures,
    make_plan,
    run,
    write_reports,
)
from bench.tracking import Tracker, TrackingError


@dataclass(frozen=True)
class RunOptions:
    suite: str
    methods: list[str] | None
    seeds: int | None
    rounds: int | None
    assignments: list[str]
    executor: str
    hosts: int
    cpus_per_trial: float
    gpus_per_trial: float | None
    max_concurrent: int | None
    address: str | None
    tracking_uri: str | None
    checkpoint_every: float
    data_root: Path | None
    out: Path
    dry_run: bool

    def settings(self) -> dict[str, Any]:
        """The keys of the suite that this command changes."""
        changes = dict(parse_assignment(text) for text in self.assignments)
        if self.rounds is not None:
            changes["training.rounds"] = self.rounds
        return changes

    def check(self) -> None:
        for name, value, least in (
            ("--seeds", self.seeds, 1),
            ("--rounds", self.rounds, 1),
            ("--hosts", self.hosts, 1),
            ("--max-concurrent", self.max_concurrent, 1),
        ):
            if value is not None and value < least:
                raise UserError(f"{name} {value}: must be at least {least}")
        for name, share in (
            ("--cpus-per-trial", self.cpus_per_trial),
            ("--checkpoint-every", self.checkpoint_every),
        ):
            if not 0 < share < math.inf:
                raise UserError(f"{name} {share:g}: must be a number greater than 0")
        if self.gpus_per_trial is not None and not 0 <= self.gpus_per_trial < math.inf:
            raise UserError(f"--gpus-per-trial {self.gpus_per_trial:g}: must be a number and not negative")
        if (self.gpus_per_trial or 0) > 1 and self.gpus_per_trial != int(self.gpus_per_trial or 0):
            raise UserError(f"--gpus-per-trial {self.gpus_per_trial:g}: above 1 only whole GPUs can be given")
        if self.methods is not None and not self.methods:
            raise UserError("--methods is empty; give names separated by commas, such as fedavg,fedlsa")


def chosen_suite(options: RunOptions) -> Suite:
    suite = load_suite(options.suite)
    if options.methods:
        for name in options.methods:
            METHODS.load(name)
        suite = suite.with_methods(options.methods)
    if options.seeds is not None:
        suite = suite.model_copy(update={"seeds": options.seeds})
    settings = options.settings()
    return suite.changed(settings) if settings else suite


def run_suite(options: RunOptions) -> int:
    """Returns the exit code: 0 when all cells are there, 1 when some failed, 130 when stopped."""
    console = make_console()
    options.check()
    plan = make_plan(chosen_suite(options), options.out.absolute(), options.settings())
    conditions = Conditions(
        executor=options.executor,
        hosts=options.hosts,
        data_root=options.data_root.absolute() if options.data_root else None,
        checkpoint_seconds=options.checkpoint_every,
        commit=commit(),
    )
    check_writable(plan.directory)
    first = check_before_start(plan, conditions)
    tracker = Tracker(options.tracking_uri, options.out.absolute())
    for line in describe(plan, conditions, first):
        console.say(line)
    if options.dry_run:
        from bench.estimates import estimate

        for line in estimate(plan, conditions, options.cpus_per_trial, options.max_concurrent):
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
        from bench.tuning import Resources

        resources = Resources(
            cpus=options.cpus_per_trial,
            gpus=options.gpus_per_trial,
            hosts=options.hosts if options.executor == "ray" else 0,
            max_concurrent=options.max_concurrent,
        )
    run(plan, conditions, resources, tracker, console, options.address)


def _conclude(plan: Plan, tracker: Tracker, console: BenchConsole, seconds: float) -> int:
    from bench.commands.report import print_tables

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
