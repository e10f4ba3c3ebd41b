"""What a user asks of `bench data`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from bench.request import DataRoot, Option, Request


@dataclass(frozen=True)
class CheckRequest(Request):
    """A dataset whose files are read and compared with what was published."""

    name: Annotated[str, Option("Name of a dataset, or path of your own folder, archive or .npz file.")]
    data_root: DataRoot = None


@dataclass(frozen=True)
class FetchRequest(Request):
    """A dataset to download."""

    name: Annotated[str, Option("Name of a dataset.")]
    data_root: DataRoot = None


@dataclass(frozen=True)
class ImportRequest(Request):
    """Files to put where a dataset looks for them."""

    name: Annotated[str, Option("Name of a dataset.")]
    path: Annotated[Path, Option("Folder, archive or file to import.")]
    data_root: DataRoot = None
    link: Annotated[bool, Option("Link instead of copying.")] = False
