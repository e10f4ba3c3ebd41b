"""How a cell is computed; none of it changes the result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Conditions:
    """Executor, share of the machine and places; not part of a cell's identity."""

    executor: str = "auto"
    hosts: int = 2
    """Host actors per trial, with the executor `ray`."""
    cpus: float = 1.0
    gpus: float = 0.0
    """What a trial, or each of its hosts, may use."""
    data_root: Path | None = None
    checkpoint_seconds: float = 15.0
    """Time between two checkpoints of a cell."""
    commit: str = ""
    """The commit of the harness, for the record."""

    @property
    def threads(self) -> int:
        return max(1, int(self.cpus))
