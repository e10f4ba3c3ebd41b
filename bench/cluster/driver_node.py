"""The driver's node has the run folder and the data; processes on other nodes ask it for them."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import ray
from filelock import FileLock, Timeout
from ray.exceptions import RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from bench.cluster.data_server import start_data_server
from bench.cluster.node_versions import compare_versions
from bench.config.cell import CellConfig
from bench.data.base import data_root
from bench.data.cache import cache_root
from bench.engine.prepared_data import PreparedData
from bench.records.cell_folder import CellFolder
from bench.records.provenance import code_versions
from bench.records.run_folder import RunFolder
from bench.records.transfer import FileUpdate, contents

TIDY_SECONDS = 10.0
SCRATCH = "bench-cells-"
"""What the names of folders begin with in which processes work; on other nodes, a lock is beside each."""


@dataclass(frozen=True)
class DriverNode:
    """How a process of a run gets at what is on the driver's node."""

    node: str
    """Ray's id of that node."""
    scratch: Path
    """A folder on the run folder's own disk, removed when the run ends."""
    places: Mapping[str, str]
    """The environment variables by which the driver finds its cache and its data."""
    data_server: str = ""
    """The name of the actor that answers processes on other nodes; empty where there are none."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of the driver's code; empty where there are no other nodes."""

    @property
    def is_here(self) -> bool:
        """Whether this process runs on the driver's node, and sees its disk."""
        return ray.get_runtime_context().get_node_id() == self.node and self.scratch.is_dir()

    def take_effect(self) -> None:
        """Let this process use the driver's cache and data if it can; it may have been started elsewhere."""
        if self.is_here:
            os.environ.update(self.places)

    def check_versions(self) -> None:
        """A UserError if this process has other code than the driver: its node may have joined lately."""
        if self.versions and not self.is_here:
            compare_versions(ray.util.get_node_ip_address(), code_versions(), self.versions)

    def contents(self, folder: CellFolder) -> FileUpdate:
        """What has been delivered of a cell so far."""
        if self.is_here:
            return contents(folder)
        return cast(FileUpdate, self._answer("contents", folder))

    def prepared(self, config: CellConfig) -> PreparedData | None:
        """The data of a cell from Ray's object store; None where they are on this node's disk."""
        if self.is_here:
            return None
        (reference,) = self._answer("prepared", config)
        return cast(PreparedData, ray.get(reference))

    def _answer(self, question: str, subject: object) -> Any:
        """What the data_server says; its errors are raised as if they had happened here."""
        try:
            return ray.get(getattr(ray.get_actor(self.data_server), question).remote(subject))
        except RayTaskError as error:
            raise error.cause from None


@ray.remote(num_cpus=0, max_retries=0)
def remove_abandoned() -> None:
    """Remove the scratch folders of processes on this node that were killed: nobody holds their locks."""
    for file in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*.lock"):
        with suppress(Timeout, OSError), FileLock(file, blocking=False):
            shutil.rmtree(file.with_suffix(""), ignore_errors=True)
            file.unlink()


def _tidy(driver_node: str) -> None:
    """Remove what killed processes left on other nodes; a node that does not answer at once is left alone."""
    there = [node["NodeID"] for node in ray.nodes() if node["Alive"] and node["NodeID"] != driver_node]
    places = [NodeAffinitySchedulingStrategy(node_id=node, soft=False) for node in there]
    pending = [remove_abandoned.options(scheduling_strategy=place).remote() for place in places]
    if pending:
        ray.wait(pending, num_returns=len(pending), timeout=TIDY_SECONDS)


def _places() -> dict[str, str]:
    root = data_root()
    return {"BENCH_CACHE": str(cache_root().absolute())} | (
        {"BENCH_DATA_ROOT": str(root.absolute())} if root is not None else {}
    )


@contextmanager
def open_driver_node(run: RunFolder, root: Path | None, joined: bool) -> Iterator[DriverNode]:
    """For the duration of a run; in a cluster that was joined, with an actor that answers other nodes."""
    node = ray.get_runtime_context().get_node_id()
    joined = joined or sum(each["Alive"] for each in ray.nodes()) > 1
    name = f"bench-data-server-{uuid.uuid4().hex}" if joined else ""
    with run.scratch() as scratch:
        places = _places()
        root = root.absolute() if root else None
        data_server = start_data_server(name, node, root, places) if joined else None
        try:
            yield DriverNode(node, scratch, places, name, code_versions() if joined else {})
        finally:
            if data_server is not None:
                with suppress(Exception):  # whatever it is that a Ray without its head raises
                    ray.kill(data_server)
                    _tidy(node)
