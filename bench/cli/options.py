"""Options that belong to several commands and to no request, and what these commands have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from bench.cli.request_options import ROOT_VARIABLE, TUNED_ALONE
from bench.request import help_of
from bench.runs.request import BOTH
from bench.trials.request import ComputingRequest

if TYPE_CHECKING:
    from bench.cli.console import BenchConsole

DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")]
Out = Annotated[Path, typer.Option("--out", help=help_of(ComputingRequest, "out"))]
Runs = Annotated[Path, typer.Option("--runs", help=help_of(ComputingRequest, "out"))]
TunedDir = Annotated[Path, typer.Option("--tuned-dir", help=help_of(ComputingRequest, "tuned_dir"))]
DataRoot = Annotated[
    Path | None,
    typer.Option("--data-root", envvar=ROOT_VARIABLE, help=help_of(ComputingRequest, "data_root")),
]


@contextmanager
def stopping(console: BenchConsole) -> Iterator[None]:
    """Inside, Ctrl-C ends the command with a sentence and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        console.say("\nstopped; nothing is lost: run the same command again to resume")
        raise typer.Exit(130) from None


class WithTuned(TyperCommand):
    """A command whose option --tuned may stand alone or have the value `both`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_values(args, "--tuned", TUNED_ALONE, (TUNED_ALONE, BOTH)))


def with_values(args: Sequence[str], option: str, alone: str, values: Sequence[str]) -> list[str]:
    """The arguments with a value behind the option wherever none of the values follows it."""
    given: list[str] = []
    for argument, following in pairwise([*args, ""]):
        given.append(f"{option}={alone}" if argument == option and following not in values else argument)
    return given
