"""What a user asks of `bench export`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from bench.request import DataRoot, Option, Request, RunsFolder


@dataclass(frozen=True)
class ExportRequest(Request):
    """A cell whose trained adapters are written in another library's format."""

    cell: Annotated[str, Option("The beginning of the cell's id.")]
    to: Annotated[Literal["peft"], Option("The format: peft.")]
    client: Annotated[int | None, Option("Export this client's own model instead of the server's.")] = None
    out: Annotated[Path | None, Option("Where to; default: the cell's folder.")] = None
    root: RunsFolder = Path("runs")
    data_root: DataRoot = None
