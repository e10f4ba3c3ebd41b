"""The command line. Heavy imports stay inside the command that needs them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bench.errors import UserError

app = typer.Typer(
    name="bench",
    help="Comparison tables for federated learning that can be trusted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class _State:
    debug = False


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"bench {version('fl-bench-harness')}")
        raise typer.Exit


@app.callback()
def _root(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    _State.debug = debug


Suite = Annotated[str, typer.Option("--suite", help="Name of a suite, or the path of a suite file.")]
Out = Annotated[Path, typer.Option("--out", help="Folder of the runs.")]
TunedDir = Annotated[Path, typer.Option("--tuned-dir", help="Folder of what `bench tune` has found.")]
DataRoot = Annotated[
    Path | None, typer.Option("--data-root", envvar="BENCH_DATA_ROOT", help="Folder of the datasets.")
]
CpusPerTrial = Annotated[float, typer.Option(help="CPU cores (and threads) of a trial.")]
GpusPerTrial = Annotated[
    float | None, typer.Option(help="GPUs of a trial, such as 0.25 or 1; default: 1 if there are any.")
]
MaxConcurrent = Annotated[int | None, typer.Option(help="At most so many trials at once.")]
Address = Annotated[str | None, typer.Option(help="An existing Ray cluster, or auto.")]
TrackingUri = Annotated[str | None, typer.Option(help="MLflow server; default: sqlite in --out.")]
CheckpointEvery = Annotated[float, typer.Option(help="Seconds between checkpoints of a cell.")]


@app.command()
def run(
    suite: Suite,
    methods: Annotated[str | None, typer.Option(help="Only these methods: a,b,c.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Number of rounds.")] = None,
    encoder: Annotated[
        str | None, typer.Option(help="What turns images into features: see `bench list encoders`.")
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Another value, such as fedlsa.lam=0.7; may be repeated."
        ),
    ] = None,
    executor: Annotated[str, typer.Option(help="auto, loop, stacked or ray.")] = "auto",
    hosts: Annotated[
        int | None,
        typer.Option(help="Host actors per trial with --executor ray; default: 2, or 1 on two cores."),
    ] = None,
    cpus_per_trial: CpusPerTrial = 1,
    gpus_per_trial: GpusPerTrial = None,
    max_concurrent: MaxConcurrent = None,
    address: Address = None,
    tracking_uri: TrackingUri = None,
    checkpoint_every: CheckpointEvery = 15,
    data_root: DataRoot = None,
    out: Out = Path("runs"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
    tuned: Annotated[bool, typer.Option("--tuned", help="With what `bench tune` has found.")] = False,
    tuned_dir: TunedDir = Path("tuned"),
) -> None:
    """Run what is missing of a suite, then make its tables."""
    from bench.cli.run import RunOptions, run_suite

    options = RunOptions(
        suite=suite,
        methods=None if methods is None else [name.strip() for name in methods.split(",") if name.strip()],
        seeds=seeds,
        rounds=rounds,
        encoder=encoder,
        assignments=assignments or [],
        executor=executor,
        hosts=hosts,
        cpus_per_trial=cpus_per_trial,
        gpus_per_trial=gpus_per_trial,
        max_concurrent=max_concurrent,
        address=address,
        tracking_uri=tracking_uri,
        checkpoint_every=checkpoint_every,
        data_root=data_root,
        out=out,
        dry_run=dry_run,
        tuned=tuned,
        tuned_dir=tuned_dir,
    )
    raise typer.Exit(run_suite(options))


@app.command()
def tune(
    suite: Suite,
    method: Annotated[str, typer.Option(help="A method, several as a,b,c, or all of the suite.")] = "all",
    space: Annotated[str, typer.Option(help="paper or wide.")] = "wide",
    trials: Annotated[int, typer.Option(help="Trials a method, its default included.")] = 20,
    budget: Annotated[
        str, typer.Option(help="trials, or rounds: early stops make room for further trials.")
    ] = "trials",
    search: Annotated[str, typer.Option(help="optuna, random or grid.")] = "optuna",
    scheduler: Annotated[str, typer.Option(help="asha or none.")] = "asha",
    seeds: Annotated[int, typer.Option(help="Seeds of a configuration; its score is their mean.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the search itself.")] = 0,
    rounds: Annotated[int | None, typer.Option(help="Number of rounds; default: the suite's.")] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Another value, such as training.epochs=1; may be repeated."
        ),
    ] = None,
    sweeps: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            metavar="KEY=A,B,…",
            help="Values to choose from: fedlsa.lam=0.1,0.7, training.optimiser.lr=…; "
            "of the data, such as partition.beta=0.1,0.5: every configuration under each.",
        ),
    ] = None,
    time_budget: Annotated[str | None, typer.Option(help="Of all searches together: 90s, 30m, 2h.")] = None,
    max_failures: Annotated[int, typer.Option(help="Failures of one kind that end a search.")] = 5,
    cpus_per_trial: CpusPerTrial = 1,
    gpus_per_trial: GpusPerTrial = None,
    max_concurrent: MaxConcurrent = None,
    address: Address = None,
    tracking_uri: TrackingUri = None,
    checkpoint_every: CheckpointEvery = 15,
    data_root: DataRoot = None,
    out: Out = Path("runs"),
    tuned_dir: TunedDir = Path("tuned"),
) -> None:
    """Choose hyperparameters on validation data, with the same budget for every method."""
    from bench.cli.tune import TuneOptions, tune_suite

    options = TuneOptions(
        suite=suite,
        methods=[name.strip() for name in method.split(",") if name.strip()],
        space=space,
        trials=trials,
        budget=budget,
        search=search,
        scheduler=scheduler,
        seeds=seeds,
        seed=seed,
        rounds=rounds,
        assignments=assignments or [],
        sweeps=sweeps or [],
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
    raise typer.Exit(tune_suite(options))


@app.command()
def report(
    runs: Annotated[list[str], typer.Argument(help="Run folders, or names of suites below --runs.")],
    formats: Annotated[
        str, typer.Option("--format", help="md, latex, csv, html, separated by commas.")
    ] = "md,latex,csv,html",
    out: Annotated[Path | None, typer.Option(help="Folder for the files; default: the run's own.")] = None,
    root: Annotated[Path, typer.Option("--runs", help="Folder of the runs.")] = Path("runs"),
    mix: Annotated[
        bool, typer.Option("--mix", help="Put runs into one table although they are not comparable.")
    ] = False,
) -> None:
    """Make tables, figures and page of runs again from their records; runs of one suite become one."""
    from bench.cli.report import report_runs

    report_runs(runs, [name.strip() for name in formats.split(",") if name.strip()], out, root, mix)


@app.command()
def compare(
    first: Annotated[str, typer.Argument(help="A run folder, or the name of a suite below --runs.")],
    second: Annotated[str, typer.Argument(help="Another one.")],
    root: Annotated[Path, typer.Option("--runs", help="Folder of the runs.")] = Path("runs"),
) -> None:
    """Show what changed between two runs, cell by cell."""
    from bench.cli.compare import compare_two

    compare_two(first, second, root)


@app.command(name="list")
def list_(
    kind: Annotated[str, typer.Argument(help="suites, methods, datasets, models, encoders or runs.")],
    root: Annotated[Path, typer.Option("--runs", help="Folder of the runs.")] = Path("runs"),
) -> None:
    """List what there is."""
    from bench.cli.inspect import list_kind

    list_kind(kind, root)


@app.command()
def show(
    kind: Annotated[str, typer.Argument(help="suite, method, partition, cell or tuned.")],
    name: Annotated[
        str, typer.Argument(help="Its name; for a cell, the beginning of its hash; for tuned, a suite.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Seed, for a partition.")] = 0,
    data_root: DataRoot = None,
    root: Annotated[Path, typer.Option("--runs", help="Folder of the runs.")] = Path("runs"),
    tuned_dir: TunedDir = Path("tuned"),
) -> None:
    """Show one thing in full."""
    from bench.cli.inspect import show_thing

    show_thing(kind, name, seed, data_root, root, tuned_dir)


data = typer.Typer(help="Check, fetch or import the files of a dataset.", no_args_is_help=True)
app.add_typer(data, name="data")
DatasetName = Annotated[str, typer.Argument(help="Name of a dataset.")]


@data.command(name="check")
def check_data(name: DatasetName, data_root: DataRoot = None) -> None:
    """Read every file and compare the counts with the known ones."""
    from bench.cli.data import check

    raise typer.Exit(check(name, data_root))


@data.command(name="fetch")
def fetch_data(name: DatasetName, data_root: DataRoot = None) -> None:
    """Download a dataset, or say where to get it."""
    from bench.cli.data import fetch

    fetch(name, data_root)


@data.command(name="import")
def import_data(
    name: DatasetName,
    path: Annotated[Path, typer.Argument(help="Folder, archive or file to take in.")],
    data_root: DataRoot = None,
    link: Annotated[bool, typer.Option("--link", help="Link instead of copying.")] = False,
) -> None:
    """Check a folder or an archive and put it where the suites find it."""
    from bench.cli.data import take_in

    take_in(name, path, data_root, link)


@app.command()
def check(
    methods: Annotated[
        list[str], typer.Argument(help="Names of methods, paths of Python files with one, or all.")
    ],
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Set a hyperparameter, e.g. mu=0.1; may be repeated."
        ),
    ] = None,
) -> None:
    """Hold methods to the contract: padding, stacking, randomness, privacy, traffic, resume and more."""
    from bench.cli.check import check_methods

    raise typer.Exit(check_methods(methods, assignments or []))


@app.command()
def new(
    kind: Annotated[str, typer.Argument(help="method, dataset or suite.")],
    name: Annotated[str, typer.Argument(help="Its name: letters, digits and '_'.")],
    folder: Annotated[Path, typer.Option("--dir", help="Folder for the file.")] = Path(),
) -> None:
    """Write a starting file for a method, a dataset or a suite."""
    from bench.cli.new import write_new

    write_new(kind, name, folder)


@app.command()
def doctor(
    data_root: DataRoot = None,
    out: Out = Path("runs"),
) -> None:
    """Check this machine: versions, devices, folders, Ray and MLflow."""
    from bench.cli.doctor import examine

    raise typer.Exit(examine(data_root, out))


@app.command()
def speed(
    work: Annotated[str, typer.Option(help="digits, synth, cnn, heads or vit.")] = "digits",
    repeats: Annotated[int, typer.Option(min=1, help="How often each side is measured, in turn.")] = 7,
) -> None:
    """Updates per CPU second of each executor against a plain PyTorch loop, side by side."""
    from bench.speed.compare import compare as compare_executors

    compare_executors(work, repeats)


def main() -> None:
    """Entry point: mistakes of the user become one sentence and exit code 2."""
    try:
        app()
    except UserError as error:
        if _State.debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
