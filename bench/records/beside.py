"""Files that a run directory may hold beside its records: who has which data, and pictures of embeddings."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.errors import UserError


@dataclass(frozen=True)
class ClientShare:
    """A client's training samples, a number for each class."""

    name: str
    domain: str
    counts: tuple[int, ...]


@dataclass(frozen=True)
class PartitionRecord:
    """How the data were divided in one setting of a run."""

    clients: tuple[ClientShare, ...]
    classes: tuple[str, ...]
    setting: str = ""
    """Which of the run's settings and seeds this one belongs to, in words."""


@dataclass(frozen=True)
class Beside:
    """What was found; nothing of it has to be there."""

    partition: PartitionRecord | None = None
    projections: Mapping[str, Path] = field(default_factory=dict)
    """Cell → the file with its embeddings in two dimensions."""


def find_beside(run_directory: Path) -> Beside:
    """Look into a run directory and the folders of its planned cells; what is no run has nothing."""
    if not (run_directory / "plan.json").is_file():
        return Beside()
    plan = json.loads((run_directory / "plan.json").read_bytes())
    files = {entry["cell"]: run_directory / entry["dir"] / "projection.npz" for entry in plan["cells"]}
    return Beside(
        partition=_partition(run_directory / "partition.json"),
        projections={cell: file for cell, file in files.items() if file.is_file()},
    )


def _partition(file: Path) -> PartitionRecord | None:
    if not file.is_file():
        return None
    try:
        content = json.loads(file.read_bytes())
        classes = tuple(map(str, content["classes"]))
        clients = tuple(
            ClientShare(str(client["name"]), str(client["domain"]), tuple(map(int, client["counts"])))
            for client in content["clients"]
        )
        if not clients or any(len(client.counts) != len(classes) for client in clients):
            raise ValueError("a client needs a count for each class")
    except (ValueError, KeyError, TypeError) as problem:
        raise UserError(
            f"{file} cannot be read ({problem!r}): delete it and make the report again."
        ) from None
    return PartitionRecord(clients, classes, str(content.get("setting", "")))
