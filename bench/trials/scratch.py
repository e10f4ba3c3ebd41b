"""Where a process works on cells: a scratch folder per cell, whose updates go to the driver."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock

from bench.cluster.driver_node import SCRATCH, DriverNode
from bench.config.cell import CellConfig
from bench.engine.cell_stack import Cells
from bench.engine.conditions import Conditions
from bench.records.cell_folder import CellFolder
from bench.records.transfer import FileUpdate, FileUpdates


@dataclass(frozen=True)
class Job:
    """A trial's whole input. Tune passes objects that are not dictionaries on as they are."""

    cells: Cells
    """Where the driver keeps each cell, and what it is."""
    conditions: Conditions
    driver_node: DriverNode
    stacks: Sequence[int] = field(default=(1,), kw_only=True)
    """How many of the cells are trained together, then how many of the next ones, and so on."""


class CellUpdate(NamedTuple):
    """What is new of a cell."""

    folder: CellFolder
    """The driver's."""
    config: CellConfig | None
    """With the first updates of a process alone."""
    update: FileUpdate


class ScratchFolders:
    """The scratch folders of a job's cells, with what an earlier attempt has delivered of them."""

    def __init__(self, job: Job) -> None:
        here = job.driver_node.is_here
        self._lock: FileLock | None = None
        if here:
            self._place = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=job.driver_node.scratch))
        else:
            self._place, self._lock = _own_folder()
        self.cells: Cells = [
            (CellFolder(self._place / str(number)), config) for number, (_, config) in enumerate(job.cells)
        ]
        for (folder, config), (kept, _) in zip(self.cells, job.cells, strict=True):
            job.driver_node.contents(kept).deliver(folder, config)
        self._changes = {
            kept: FileUpdates(folder, by_path=here)
            for (folder, _), (kept, _) in zip(self.cells, job.cells, strict=True)
            if not folder.is_done
        }
        self._unfinished = [(kept, config) for kept, config in job.cells if kept in self._changes]

    def updates(self, waiting: Container[CellFolder] = ()) -> list[CellUpdate]:
        """What is new since the last call; nothing of cells that were done before or still wait.

        Those have yet to read their rounds and checkpoints in the scratch folder, where updates come from.
        """
        begun = [
            (kept, config) for kept, config in self._unfinished if self._changes[kept].folder not in waiting
        ]
        updates = [(kept, config, self._changes[kept].pack()) for kept, config in begun]
        return [
            CellUpdate(kept, config if update.first else None, update)
            for kept, config, update in updates
            if update
        ]

    def clear(self) -> None:
        """Remove the scratch folders; what was packed before is safe with the driver."""
        shutil.rmtree(self._place, ignore_errors=True)
        if self._lock is not None:
            self._lock.release()
            Path(self._lock.lock_file).unlink(missing_ok=True)


def _own_folder() -> tuple[Path, FileLock]:
    """A folder on this node alone, and a lock beside it that is held until the process ends."""
    folder = Path(tempfile.gettempdir()) / f"{SCRATCH}{uuid.uuid4().hex}"
    lock = FileLock(folder.with_suffix(".lock"))
    lock.acquire()
    folder.mkdir(mode=0o700)
    return folder, lock
