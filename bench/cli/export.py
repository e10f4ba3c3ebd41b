"""`bench export`: what a finished cell has trained, in another library's format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.cli import options
from bench.errors import UserError, nearest

FORMATS = ("peft",)


def export(
    cell: Annotated[str, typer.Argument(help="The beginning of the cell's id.")],
    to: Annotated[str, typer.Option("--to", help="The format: peft.")],
    client: Annotated[
        int | None, typer.Option(help="Export this client's own model instead of the server's.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Where to; default: the cell's folder.")] = None,
    root: options.Runs = Path("runs"),
    data_root: options.DataRoot = None,
) -> None:
    """Write the trained adapters of a cell that was run with --keep-model."""
    if to not in FORMATS:
        raise UserError(f"--to {to}: {nearest(to, FORMATS)}")
    from bench.cli.console import make_console
    from bench.engine.peft_export import export_adapters
    from bench.records.run_folder import find_cell

    folder = find_cell(root, cell)
    whose = "server" if client is None else f"client-{client}"
    written = export_adapters(folder, out or folder.path / "export" / whose, client, data_root)
    console = make_console()
    for each in written:
        console.say(f"adapter '{each.name}': {each}")
    console.say(f"load it with peft.PeftModel.from_pretrained(backbone, '{written[0]}')")
