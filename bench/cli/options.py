"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from bench.errors import UserError

Suite = Annotated[str, typer.Option("--suite", help="Name of a suite, or path of a suite file.")]
Out = Annotated[Path, typer.Option("--out", help="Folder of the runs.")]
Runs = Annotated[Path, typer.Option("--runs", help="Folder of the runs.")]
TunedDir = Annotated[Path, typer.Option("--tuned-dir", help="Folder of the tuned hyperparameters.")]
DataRoot = Annotated[
    Path | None, typer.Option("--data-root", envvar="BENCH_DATA_ROOT", help="Folder of the datasets.")
]
CpusPerTrial = Annotated[float, typer.Option(help="CPU cores (and threads) per trial.")]
GpusPerTrial = Annotated[
    float | None, typer.Option(help="GPUs per trial, e.g. 0.25 or 1; default: 1 if there are any.")
]
MaxConcurrent = Annotated[int | None, typer.Option(help="Maximum number of concurrent trials.")]
Address = Annotated[str | None, typer.Option(help="Address of a running Ray cluster, or auto.")]
TrackingUri = Annotated[str | None, typer.Option(help="MLflow tracking URI; default: SQLite in --out.")]
CheckpointEvery = Annotated[float, typer.Option(help="Seconds between the checkpoints of a cell.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a setting, e.g. fedlsa.lam=0.7; may be repeated."
    ),
]


def names(text: str) -> Sequence[str]:
    """The names in a list separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


class WithTuned(TyperCommand):
    """A command whose option --tuned may stand alone or have the value `both`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_values(args, "--tuned", alone=YES, values=(YES, BOTH)))


YES = "yes"
BOTH = "both"


def with_values(args: Sequence[str], option: str, alone: str, values: Sequence[str]) -> list[str]:
    """The arguments with a value behind the option wherever none of the values follows it."""
    given: list[str] = []
    for argument, following in pairwise([*args, ""]):
        given.append(f"{option}={alone}" if argument == option and following not in values else argument)
    return given


def tuned(text: str | None) -> bool | Literal["both"]:
    """What --tuned asks for."""
    if text not in (None, YES, BOTH):
        raise UserError(f"--tuned {text}: write --tuned alone, or --tuned {BOTH}")
    return "both" if text == BOTH else text is not None
