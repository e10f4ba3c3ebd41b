"""`bench new`: starting files that work as they are."""

from __future__ import annotations

import keyword
from pathlib import Path
from typing import Annotated

import typer

from bench.cli.templates import DATASET, METHOD, SUITE
from bench.errors import UserError, nearest

KINDS = {"method": METHOD, "dataset": DATASET, "suite": SUITE}


def new(
    kind: Annotated[str, typer.Argument(help="method, dataset or suite.")],
    name: Annotated[str, typer.Argument(help="Name of the new file, without its ending.")],
    folder: Annotated[Path, typer.Option("--dir", help="Folder for the file.")] = Path(),
) -> None:
    """Write a starting file for a method, a dataset or a suite."""
    if kind not in KINDS:
        raise UserError(f"bench new {kind}: unknown kind; {nearest(kind, KINDS)}")
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UserError(
            f"'{name}' cannot name a {kind}; use letters, digits and '_', and begin with a letter"
        )
    if kind == "method":
        _refuse_known(name)
    template = KINDS[kind]
    file = folder / f"{name}{template.ending}"
    if file.exists():
        raise UserError(f"{file} is already there; choose another name or --dir, or remove it first")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(template.filled(name), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file} cannot be written: {error.strerror}; choose another --dir") from None
    from bench.cli.console import make_console

    console = make_console()
    console.say(f"wrote {file}")
    console.say(f"next: {template.next_step.replace('NAME', name).replace('FILE', str(file))}")


def _refuse_known(name: str) -> None:
    from bench.suite.methods import METHODS, WRAPPERS

    if name in (*METHODS.names(), *WRAPPERS.names()):
        raise UserError(f"there is a method '{name}' already; choose another name")
