"""`bench new`: starting files that work as they are."""

from __future__ import annotations

import keyword
from pathlib import Path
from typing import Annotated

import typer

from bench.cli.templates import DATASET, METHOD, SUITE
from bench.errors import UserError, nearest

KINDS = {"method": METHOD, "dataset": DATASET, "suite": SUITE}
SPACE = "space"


def new(
    kind: Annotated[str, typer.Argument(help="method, dataset, suite or space.")],
    name: Annotated[
        str, typer.Argument(help="Name of the new file, without its ending; for a space, the method's file.")
    ],
    folder: Annotated[Path, typer.Option("--dir", help="Folder for the file; not for a space.")] = Path(),
) -> None:
    """Write a starting file for a method, a dataset or a suite, or the search space of a method's file."""
    if kind == SPACE:
        _new_space(name, folder)
        return
    if kind not in KINDS:
        raise UserError(f"bench new {kind}: unknown kind; {nearest(kind, [*KINDS, SPACE])}")
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
    _tell(file, template.next_step.replace("NAME", name).replace("FILE", str(file)))


def _new_space(method_file: str, folder: Path) -> None:
    from search_spaces.writing import write_space

    if folder != Path():
        raise UserError("bench new space: the file is written beside its method; leave out --dir")
    file = write_space(Path(method_file))
    _tell(file, f"change it, then bench tune --suite quickstart_cnn --methods {method_file}")


def _tell(file: Path, next_step: str) -> None:
    from bench.cli.console import make_console

    console = make_console()
    console.say(f"wrote {file}")
    console.say(f"next: {next_step}")


def _refuse_known(name: str) -> None:
    from bench.suite.methods import METHODS, WRAPPERS

    if name in (*METHODS.names(), *WRAPPERS.names()):
        raise UserError(f"there is a method '{name}' already; choose another name")
