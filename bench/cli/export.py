"""`bench export`: what a finished cell has trained, in another library's format."""

from __future__ import annotations

from bench.cli.request_options import command_of
from bench.engine.export_request import ExportRequest


@command_of(ExportRequest, positional=("cell",))
def export(request: ExportRequest) -> None:
    """Write the trained adapters of a cell that was run with --keep-model."""
    from bench.cli.console import make_console
    from bench.engine.peft_export import export as export_cell

    console = make_console()
    written = export_cell(request, console)
    for each in written:
        console.say(f"adapter '{each.name}': {each}")
    console.say(f"load it with peft.PeftModel.from_pretrained(backbone, '{written[0]}')")
