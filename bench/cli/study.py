"""`bench study`: tune, run and report on one suite or several, as one resumable command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli import options

if TYPE_CHECKING:
    from bench.cli.console import BenchConsole
    from bench.studies.request import StudyRequest
    from bench.studies.study import StudyOutcome


def study(
    suite: Annotated[str, typer.Option("--suite", help="Names or files of suites, separated by commas.")],
    methods: Annotated[str | None, typer.Option(help="Only these methods: a,b,c.")] = None,
    trials: Annotated[int, typer.Option(help="Trials per method and suite, including the default.")] = 20,
    seeds: Annotated[int, typer.Option(help="Number of seeds of the tables.")] = 5,
    rounds: Annotated[int | None, typer.Option(help="Number of rounds; default: the suite's.")] = None,
    space: Annotated[str, typer.Option(help="paper or wide.")] = "wide",
    search: Annotated[str, typer.Option(help="optuna, random or grid.")] = "optuna",
    scheduler: Annotated[str, typer.Option(help="asha or none.")] = "asha",
    search_seeds: Annotated[int, typer.Option(help="Seeds per configuration of a search.")] = 1,
    time_budget: Annotated[str | None, typer.Option(help="For all searches together: 90s, 30m, 2h.")] = None,
    executor: Annotated[str, typer.Option(help="auto, loop, stacked, ray or debug.")] = "auto",
    cpus_per_trial: options.CpusPerTrial = 1,
    gpus_per_trial: options.GpusPerTrial = None,
    max_concurrent: options.MaxConcurrent = None,
    address: options.Address = None,
    tracking_uri: options.TrackingUri = None,
    checkpoint_every: options.CheckpointEvery = 15,
    data_root: options.DataRoot = None,
    out: options.Out = Path("runs"),
    tuned_dir: options.TunedDir = Path("tuned"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
) -> None:
    """Tune all methods with equal budgets, run tuned and default rows, and report; again: what is missing."""
    from bench.studies.request import StudyRequest

    request = StudyRequest(
        suites=options.names(suite),
        methods=None if methods is None else options.names(methods),
        trials=trials,
        seeds=seeds,
        rounds=rounds,
        space=space,
        search=search,
        scheduler=scheduler,
        search_seeds=search_seeds,
        time_budget=time_budget,
        executor=executor,
        cpus_per_trial=cpus_per_trial,
        gpus_per_trial=gpus_per_trial,
        max_concurrent=max_concurrent,
        address=address,
        tracking_uri=tracking_uri,
        checkpoint_every=checkpoint_every,
        data_root=data_root,
        out=out,
        tuned_dir=tuned_dir,
    )
    raise typer.Exit(run_study(request, dry_run))


def run_study(request: StudyRequest, dry_run: bool = False) -> int:
    """Returns the exit code: 0 when all is done, 1 when something is missing, 130 when stopped."""
    from bench.cli.console import make_console
    from bench.cli.live import ConsoleObserver
    from bench.studies.preview import preview
    from bench.studies.study import check, study

    console = make_console()
    if dry_run:
        check(request)
        for line in preview(request):
            console.say(line)
        return 0
    try:
        outcome = study(request, ConsoleObserver(console))
    except KeyboardInterrupt:
        console.say("\nstopped; nothing is lost: run the same command again to resume")
        return 130
    _show(outcome, console)
    return 0 if outcome.complete else 1


def _show(outcome: StudyOutcome, console: BenchConsole) -> None:
    from bench.cli.report import print_tables
    from bench.cli.tune import tuned_table

    if tuned := [found for each in outcome.suites for found in each.tuned]:
        console.print(tuned_table(tuned))
    for each in outcome.suites:
        if each.report:
            print_tables(each.report.tables, console)
    if len(outcome.suites) > 1 and outcome.ranking.table is not None:
        print_tables([outcome.ranking.table], console)
    for file in outcome.files:
        console.say(f"  {file}")
    for each in outcome.suites:
        for problem in each.problems:
            console.say(problem)
