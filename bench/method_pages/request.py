"""What a user asks of `bench docs`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from bench.request import Option, Request


@dataclass(frozen=True)
class DocsRequest(Request):
    """A page per method, with the results of the shipped suites."""

    results: Annotated[Path, Option("Folder of the results files.")] = Path("results")
    out: Annotated[Path, Option("Folder of the pages.")] = Path("docs/methods")
