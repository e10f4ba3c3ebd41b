"""`bench verify`: compute cells of a results file again and compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.cli import options
from bench.cli.request_options import names


def verify(
    file: Annotated[Path, typer.Argument(help="A results file, such as results/quickstart.jsonl.")],
    cells: Annotated[int, typer.Option(help="Number of cells to compute again.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the choice of cells.")] = 0,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Points of AVG by which a rerun on another kind of machine may differ; default: three "
            "standard deviations, of the file's `rerun_sd` or else of 1 point."
        ),
    ] = None,
    methods: Annotated[str, typer.Option(help="Files of methods that are not installed: a.py,b.py.")] = "",
    data_root: options.DataRoot = None,
    trust_code: Annotated[
        bool, typer.Option("--trust-code", help="Execute Python files that the results name as models.")
    ] = False,
) -> None:
    """Check every line of a results file, compute some cells again, and say whether they agree.

    On a machine of the same kind (CPU, threads, versions of torch and NumPy) a rerun must agree bit for bit.
    """
    raise typer.Exit(verify_file(file, cells, seed, tolerance, methods, data_root, trust_code))


def verify_file(
    file: Path,
    cells: int,
    seed: int,
    tolerance: float | None,
    methods: str,
    data_root: Path | None,
    trust_code: bool = False,
) -> int:
    """Returns the exit code: 0 when all agree, 1 when something does not."""
    from bench.cli.console import make_console
    from bench.request import above_zero, at_least
    from bench.studies.verification import verify as check
    from bench.suite.methods import METHODS
    from bench.words import counted

    at_least(0, cells=cells, seed=seed)
    above_zero(tolerance=tolerance)
    for given in names(methods):
        METHODS.resolve(given)
    console = make_console()
    found = check(file, cells, seed, data_root, tolerance, console.say, trust_code)
    for verdict in found.verdicts:
        console.say(f"{'agrees' if verdict.agrees else 'DISAGREES'}: {verdict.cell}: {verdict.reason}")
    wrong = sum(not verdict.agrees for verdict in found.verdicts)
    again = min(cells, found.lines)
    console.say(
        f"{counted(found.lines, 'line')} checked, {counted(again, 'cell')} chosen with seed {seed}: "
        + (f"{counted(wrong, 'cell')} did not agree" if wrong else "all agree")
    )
    return 1 if wrong else 0
