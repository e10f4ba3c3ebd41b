"""What several commands have in common beside their requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from bench.cli.request_options import TUNED_ALONE
from bench.runs.request import BOTH, EVERY, SHARED

if TYPE_CHECKING:
    from bench.cli.console import BenchConsole

DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")]


@contextmanager
def stopping(console: BenchConsole) -> Iterator[None]:
    """Inside, Ctrl-C ends the command with a sentence and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        console.say("\nstopped; nothing is lost: run the same command again to resume")
        raise typer.Exit(130) from None


class WithTuned(TyperCommand):
    """A command whose option --tuned may stand alone or have a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(
            ctx, with_values(args, "--tuned", TUNED_ALONE, (TUNED_ALONE, BOTH, SHARED, EVERY))
        )


def with_values(args: Sequence[str], option: str, alone: str, values: Sequence[str]) -> list[str]:
    """The arguments with a value behind the option wherever none of the values follows it."""
    given: list[str] = []
    for argument, following in pairwise([*args, ""]):
        given.append(f"{option}={alone}" if argument == option and following not in values else argument)
    return given
