"""`bench run`: run what is missing of a suite, then make its tables."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli import options

if TYPE_CHECKING:
    from bench.cli.console import BenchConsole
    from bench.cli.live import ConsoleObserver
    from bench.runs.plan import Plan
    from bench.runs.request import RunRequest
    from bench.tracking.tracker import Tracker

SECONDS_FOR_A_REPORT = 120.0
"""How long a shard waits for another one that makes the report at the same time."""


def run(
    suite: options.Suite,
    methods: Annotated[str | None, typer.Option(help="Only these methods: a,b,c.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Number of rounds.")] = None,
    encoder: Annotated[
        str | None, typer.Option(help="Frozen encoder of the pictures or texts: see `bench list encoders`.")
    ] = None,
    overrides: options.Overrides = None,
    executor: Annotated[str, typer.Option(help="auto, loop, stacked, ray or debug.")] = "auto",
    hosts: Annotated[
        int | None,
        typer.Option(help="Host actors per trial with --executor ray; default: 2, or 1 on two cores."),
    ] = None,
    cpus_per_trial: options.CpusPerTrial = 1,
    gpus_per_trial: options.GpusPerTrial = None,
    max_concurrent: options.MaxConcurrent = None,
    address: options.Address = None,
    tracking_uri: options.TrackingUri = None,
    checkpoint_every: options.CheckpointEvery = 15,
    keep_model: Annotated[
        bool, typer.Option("--keep-model", help="Keep the final model of each cell, for `bench export`.")
    ] = False,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N", help="Run only part I of N of the cells; for job arrays over one folder."
        ),
    ] = None,
    data_root: options.DataRoot = None,
    out: options.Out = Path("runs"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
    tuned: Annotated[
        str | None,
        typer.Option(
            "--tuned",
            metavar="[both]",
            help="Use the hyperparameters chosen by `bench tune`; --tuned both also shows the defaults.",
        ),
    ] = None,
    tuned_dir: options.TunedDir = Path("tuned"),
) -> None:
    """Run what is missing of a suite, then make its tables."""
    from bench.runs.request import RunRequest
    from bench.suite.overrides import parse_assignment

    request = RunRequest(
        suite=suite,
        methods=None if methods is None else options.names(methods),
        seeds=seeds,
        rounds=rounds,
        encoder=encoder,
        overrides=dict(parse_assignment(text) for text in overrides or []),
        executor=executor,
        hosts=hosts,
        cpus_per_trial=cpus_per_trial,
        gpus_per_trial=gpus_per_trial,
        max_concurrent=max_concurrent,
        address=address,
        tracking_uri=tracking_uri,
        checkpoint_every=checkpoint_every,
        keep_model=keep_model,
        shard=shard,
        data_root=data_root,
        out=out,
        tuned=options.tuned(tuned),
        tuned_dir=tuned_dir,
    )
    raise typer.Exit(run_suite(request, dry_run))


def run_suite(request: RunRequest, dry_run: bool = False) -> int:
    """Returns the exit code: 0 when all cells are there, 1 when some failed, 130 when stopped."""
    if not dry_run and not request.place.exists():  # so there is work for Ray, which starts beside imports
        request.begin_ray()
    from bench.cli.console import make_console
    from bench.cli.live import ConsoleObserver
    from bench.engine.executors import with_stacks
    from bench.records.files import check_writable
    from bench.runs.checks import check_before_start
    from bench.runs.drive import drive
    from bench.runs.preview import preview
    from bench.tracking.tracker import Tracker

    console = make_console()
    plan, conditions = request.plan(), request.conditions()
    check_writable(plan.folder.path)
    tracker = Tracker(request.tracking_uri, request.out.absolute())
    observer = ConsoleObserver(console)
    pending = plan.pending()
    if pending and not dry_run:
        request.begin_ray()
    first = check_before_start(pending, conditions, observer.say)
    if first is not None:
        conditions = with_stacks(conditions, first.problem)
    for line in preview(plan, pending, conditions, first):
        console.say(line)
    if dry_run:
        _say_estimate(request, plan, console)
        return 0
    started = time.monotonic()
    try:
        drive(plan, conditions, request.resources() if pending else None, tracker, observer, request.address)
    except KeyboardInterrupt:
        console.say("\nstopped; nothing is lost: run the same command again to resume")
        return 130
    seconds = time.monotonic() - started
    if plan.shard is None:
        return _conclude(plan, tracker, console, seconds)
    return _conclude_shard(plan, tracker, observer, seconds)


def _say_estimate(request: RunRequest, plan: Plan, console: BenchConsole) -> None:
    from bench.runs.estimates import estimate

    if request.address:
        console.say("time: not estimated for a cluster")
        return
    shares = request.cpus_per_trial, request.gpus_per_trial
    for line in estimate(plan.pending(), request.conditions(), *shares, request.max_concurrent):
        console.say(line)


def _conclude_shard(plan: Plan, tracker: Tracker, observer: ConsoleObserver, seconds: float) -> int:
    """Make the tables of all shards if this one ends last, and say how its own cells ended."""
    from bench.records.lock import in_turn
    from bench.runs.drive import log_all
    from bench.words import counted

    console = observer.console
    if waiting := plan.open_elsewhere():
        console.say(
            f"shard {plan.shard} ended in {seconds:.0f} s; {counted(waiting, 'cell')} of other shards "
            "have not ended: the shard that ends last makes the tables, and so does "
            f"`bench report {plan.folder.path}`"
        )
        return _say_failures(plan, console)
    with in_turn(plan.folder.path, SECONDS_FOR_A_REPORT) as mine:
        if not mine:
            console.say(f"shard {plan.shard} ended in {seconds:.0f} s; another one makes the tables")
            return _say_failures(plan, console)
        log_all(plan, tracker, observer)
        return _conclude(plan, tracker, console, seconds)


def _conclude(plan: Plan, tracker: Tracker, console: BenchConsole, seconds: float) -> int:
    """Make the tables from the records, log them, and say what failed."""
    from bench.cli.report import print_tables
    from bench.records.reader import load_run
    from bench.tracking.tracker import TrackingError
    from reports.report import FORMATS, Report

    report = Report(load_run(plan.folder.path))
    files = report.write(FORMATS, plan.folder.path)
    print_tables(report.tables, console)
    try:
        tracker.log_suite(plan.folder.path)
    except TrackingError as error:
        console.say(f"warning: the tables are not in MLflow: {error}")
    console.say(f"finished in {seconds:.0f} s; files:")
    for file in files:
        console.say(f"  {file}")
    console.say(f"explore: {tracker.ui_command()}")
    return _say_failures(plan, console)


def _say_failures(plan: Plan, console: BenchConsole) -> int:
    """Returns the exit code."""
    from bench.words import counted

    failed = plan.failures()
    for directory, reason in failed.items():
        console.say(f"failed: {plan.folder.path / directory}: {reason}")
    if failed:
        console.say(
            f"{len(failed)} of {counted(len(plan.own), 'cell')} failed; run the same command again to retry"
        )
    return 1 if failed else 0
