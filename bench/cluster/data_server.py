"""An actor on the driver's node that gives processes on other nodes what they cannot read from a disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from bench.config.cell import CellConfig
from bench.engine.prepared_data import data_key, prepare
from bench.records.cell_folder import CellFolder
from bench.records.transfer import FileUpdate, contents


@ray.remote
class DataServer:
    """Reads what the driver has written, and puts data into the object store, each dataset once."""

    def __init__(self, data_root: Path | None, places: Mapping[str, str]) -> None:
        os.environ.update(places)
        self._data_root = data_root
        self._stored: dict[str, ray.ObjectRef[Any]] = {}

    def contents(self, folder: CellFolder) -> FileUpdate:
        return contents(folder)

    def prepared(self, config: CellConfig) -> list[ray.ObjectRef[Any]]:
        """A reference to the cell's data, in a list, as Ray would otherwise return the data themselves."""
        key = data_key(config)
        if key not in self._stored:
            self._stored[key] = ray.put(prepare(config, self._data_root).in_memory())
        return [self._stored[key]]


def start_data_server(name: str, node: str, data_root: Path | None, places: Mapping[str, str]) -> Any:
    """Start the actor on a node; it takes no CPU from the trials."""
    here = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
    actor = DataServer.options(name=name, num_cpus=0, scheduling_strategy=here)  # type: ignore[attr-defined]
    return actor.remote(data_root, places)
