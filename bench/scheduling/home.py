"""Home: the driver's node, where run folder and data are; processes on other nodes ask it for them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import ray

from bench.engine.prepared_data import PreparedData
from bench.records.cell_folder import CellFolder
from bench.records.config import CellConfig
from bench.records.parcel import Parcel, contents
from bench.records.run_folder import RunFolder
from bench.scheduling.storeroom import open_storeroom


@dataclass(frozen=True)
class Home:
    """How a process of a run gets at what is on the driver's node."""

    node: str
    """Ray's id of that node."""
    scratch: Path
    """A folder on the run folder's own disk, removed when the run ends."""
    storeroom: str = ""
    """The name of the actor that answers processes on other nodes; empty where there are none."""

    @property
    def is_here(self) -> bool:
        """Whether this process runs on the driver's node, and sees its disk."""
        return ray.get_runtime_context().get_node_id() == self.node and self.scratch.is_dir()

    def contents(self, folder: CellFolder) -> Parcel:
        """What has been delivered of a cell so far."""
        if self.is_here:
            return contents(folder)
        return cast(Parcel, ray.get(self._storeroom().contents.remote(folder)))

    def prepared(self, config: CellConfig) -> PreparedData | None:
        """The data of a cell from Ray's object store; None where they are on this node's disk."""
        if self.is_here:
            return None
        references = cast(list[Any], ray.get(self._storeroom().prepared.remote(config)))
        return cast(PreparedData, ray.get(references[0]))

    def _storeroom(self) -> Any:
        return ray.get_actor(self.storeroom)


@contextmanager
def open_home(run: RunFolder, data_root: Path | None, joined: bool) -> Iterator[Home]:
    """Home for the duration of a run; in a cluster that was joined, with somebody who answers other nodes."""
    node = ray.get_runtime_context().get_node_id()
    name = f"bench-storeroom-{uuid.uuid4().hex}" if joined else ""
    with run.scratch() as scratch:
        storeroom = open_storeroom(name, node, data_root) if joined else None
        try:
            yield Home(node, scratch, name)
        finally:
            if storeroom is not None:
                ray.kill(storeroom)
