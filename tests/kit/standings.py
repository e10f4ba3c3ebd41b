"""What is safe on the disk when a process is killed, and whether it was computed again all the same."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.records.cell_folder import CellFolder
from bench.records.checkpoints import latest_checkpoint

Cell = tuple[float, float, int]
"""By its hyperparameters and its seed."""


@dataclass(frozen=True)
class Standing:
    """What was safe at a moment."""

    time: float
    rounds: dict[Cell, float]
    """Those that no cell may compute again; all of a finished cell."""

    @classmethod
    def now(cls, run: Path) -> Standing:
        """That of the cells in a folder, whose rounds are in their last checkpoint or in their result."""
        moment = time.time()
        found: dict[Cell, float] = {}
        for path in run.glob("cells/*"):
            folder = CellFolder(path)
            config = folder.config()
            if config is None:
                continue
            saved = latest_checkpoint(folder.checkpoints)
            shift, lr = config.method.hyperparameters["shift"], config.training.optimiser["lr"]
            cell = float(shift), float(lr), config.seed
            found[cell] = math.inf if folder.is_done else saved[0] if saved else 0
        return cls(moment, found)


def computed_again(rounds: Iterable[Mapping[str, Any]], standings: Iterable[Standing]) -> list[str]:
    """Rounds that began after one of these moments, although they were safe at it."""
    return [
        f"round {line['round']} of {cell}"
        for line in rounds
        for cell in [(line["shift"], line["lr"], line["seed"])]
        if any(
            line["started"] > standing.time and line["round"] <= standing.rounds.get(cell, 0)
            for standing in standings
        )
    ]
