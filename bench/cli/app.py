"""The commands under one roof. Heavy imports stay inside the command that needs them."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bench.cli import (
    check,
    compare,
    data,
    docs,
    doctor,
    export,
    listing,
    new,
    options,
    report,
    run,
    show,
    site,
    speed,
    study,
    submit,
    tune,
    verify,
    watch,
)
from bench.errors import UserError, mendable
from bench.startup.shadowed_packages import refuse_shadowed_packages
from bench.text import one_line

app = typer.Typer(
    name="bench",
    help="Comparison tables for federated learning that can be trusted.",
    no_args_is_help=True,
    add_completion=True,
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


app.command(cls=options.WithTuned)(run.run)
app.command()(tune.tune)
app.command()(study.study)
app.command()(watch.watch)
app.command()(report.report)
app.command()(compare.compare)
app.command()(submit.submit)
app.command()(verify.verify)
app.command()(site.site)
app.command()(docs.docs)
app.command(name="list")(listing.list_)
app.command()(show.show)
app.command()(export.export)
app.add_typer(data.app, name="data")
app.command()(check.check)
app.command()(new.new)
app.command()(doctor.doctor)
app.command()(speed.speed)


def main() -> None:
    """Entry point: mistakes of the user become one sentence and exit code 2."""
    try:
        refuse_shadowed_packages()
        app()
    except (UserError, OSError) as error:
        problem = mendable(error)
        if _State.debug or problem is None:
            raise
        print(f"error: {one_line(str(problem))}", file=sys.stderr)
        sys.exit(2)
