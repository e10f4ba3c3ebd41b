"""`bench tune`: choose hyperparameters on validation data, with the same budget for every method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli import options

if TYPE_CHECKING:
    from rich.table import Table

    from bench.search.request import TuneRequest
    from bench.search.tune import TuneOutcome
    from bench.search.tuned import Tuned


def tune(
    suite: options.Suite,
    method: Annotated[str, typer.Option(help="One method, several as a,b,c, or all of the suite.")] = "all",
    space: Annotated[str, typer.Option(help="Search space: paper or wide.")] = "wide",
    trials: Annotated[int, typer.Option(help="Trials per method, including the default.")] = 20,
    budget: Annotated[
        str, typer.Option(help="trials, or rounds: what early stops save goes into further trials.")
    ] = "trials",
    search: Annotated[str, typer.Option(help="optuna, random or grid.")] = "optuna",
    scheduler: Annotated[str, typer.Option(help="asha or none.")] = "asha",
    seeds: Annotated[int, typer.Option(help="Seeds per configuration; its score is their mean.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the search itself.")] = 0,
    rounds: Annotated[int | None, typer.Option(help="Number of rounds; default: the suite's.")] = None,
    overrides: options.Overrides = None,
    sweeps: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            metavar="KEY=A,B,…",
            help="Values to choose from, e.g. fedlsa.lam=0.1,0.7; a key of the data, e.g. "
            "partition.beta=0.1,0.5, runs every configuration under each value.",
        ),
    ] = None,
    time_budget: Annotated[str | None, typer.Option(help="For all searches together: 90s, 30m, 2h.")] = None,
    max_failures: Annotated[int, typer.Option(help="Failures of one kind that end a search.")] = 5,
    cpus_per_trial: options.CpusPerTrial = 1,
    gpus_per_trial: options.GpusPerTrial = None,
    max_concurrent: options.MaxConcurrent = None,
    address: options.Address = None,
    tracking_uri: options.TrackingUri = None,
    checkpoint_every: options.CheckpointEvery = 15,
    data_root: options.DataRoot = None,
    out: options.Out = Path("runs"),
    tuned_dir: options.TunedDir = Path("tuned"),
) -> None:
    """Choose hyperparameters on validation data, with the same budget for every method."""
    from bench.search.request import TuneRequest
    from bench.suite.overrides import parse_assignment, parse_sweep

    request = TuneRequest(
        suite=suite,
        methods=options.names(method),
        space=space,
        trials=trials,
        budget=budget,
        search=search,
        scheduler=scheduler,
        seeds=seeds,
        seed=seed,
        rounds=rounds,
        overrides=dict(parse_assignment(text) for text in overrides or []),
        sweeps=dict(parse_sweep(text) for text in sweeps or []),
        time_budget=time_budget,
        max_failures=max_failures,
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
    raise typer.Exit(tune_suite(request))


def tune_suite(request: TuneRequest) -> int:
    """Returns the exit code: 0 when all searches are complete, 1 when not, 130 when stopped."""
    if not request.place.exists():  # so there is work for Ray, which takes as long as these imports
        request.begin_ray()
    from bench.cli.console import make_console
    from bench.cli.live import ConsoleObserver
    from bench.search.tune import tune

    console = make_console()
    try:
        outcome = tune(request, ConsoleObserver(console))
    except KeyboardInterrupt:
        console.say("\nstopped; nothing is lost: run the same command again to resume")
        return 130
    if outcome.tuned:
        console.print(tuned_table(outcome.tuned))
    for problem in outcome.incomplete:
        console.say(problem)
    console.say(f"explore: {outcome.explore}")
    if not outcome.incomplete:
        console.say(f"use it: {_command_that_uses(outcome, request)}")
    return 1 if outcome.incomplete else 0


def _command_that_uses(outcome: TuneOutcome, request: TuneRequest) -> str:
    from bench.search.tuned import FOLDER

    command = f"bench run --suite {request.suite} --tuned"
    tuned = [search.method for search in outcome.searches]
    if tuned != [entry.name for entry in request.load_suite().methods]:
        command += f" --methods {','.join(tuned)}"
    return command if request.tuned_dir == FOLDER else f"{command} --tuned-dir {request.tuned_dir}"


def tuned_table(outcomes: Sequence[Tuned]) -> Table:
    """What was chosen for each method, and what it cost."""
    from rich.table import Table

    from bench.search.progress import settings_text

    grid = Table("suite", "method", "default", "tuned", "chosen", "trials", "rounds", "search", "space")
    for tuned in outcomes:
        spent = tuned.budget
        grid.add_row(
            tuned.suite,
            tuned.method,
            f"{100 * tuned.default.validation:.2f}",
            f"{100 * tuned.best.validation:.2f}",
            settings_text(tuned.best.set),
            f"{spent.finished} + {spent.stopped} stopped + {spent.failed} failed"
            + ("" if spent.complete else " (not complete)"),
            str(spent.rounds_spent),
            f"{tuned.how.search}, {tuned.how.scheduler}",
            tuned.how.space,
        )
    return grid
