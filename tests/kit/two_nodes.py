"""A cluster of two nodes with one CPU each, the second of which does not see the first one's disk."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.kit.cli import environment, kill_session, wait_until

SECONDS = 240
"""Until the second node must be there; the machine may be busy with other things."""
ATTEMPTS = 4
"""Starts of the second node; Ray gives up by itself on a machine that is too busy."""
RAY = Path(sys.executable).with_name("ray")


def can_hide() -> bool:
    """Whether the user may make mount namespaces, in which a folder can be covered up."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0


class TwoNodes:
    """The first node is there as long as the cluster; the second can be lost and replaced."""

    def __init__(self, cluster: Any, home: Path, abroad: Path, variables: dict[str, str]) -> None:
        self._cluster = cluster
        self.address: str = cluster.address
        self.scratch = abroad / "tmp"
        """What the second node takes for the place of temporary files."""
        self.scratch.mkdir(parents=True)
        join = [RAY, "start", "--address", self.address, "--num-cpus", "1", "--block"]
        self._command = _covering(home, join)
        self._environment = environment(
            BENCH_CACHE=str(abroad / "cache"), TMPDIR=str(self.scratch), **variables
        )
        self.second, self.second_id = self._started()
        """The leader of a session to which all processes of the second node belong, and Ray's id of it."""

    @property
    def alive(self) -> set[str]:
        """Ray's ids of the nodes that are there, as far as Ray knows."""
        return {node["NodeID"] for node in self._cluster.global_state.node_table() if node["Alive"]}

    def replace_second(self) -> None:
        """Kill all processes of the second node at once, and start another one."""
        kill_session(self.second)
        self.second, self.second_id = self._started()

    def close(self) -> None:
        kill_session(self.second)

    def _started(self) -> tuple[subprocess.Popen[str], str]:
        before = self.alive  # a node that was killed just now may be among them
        for _ in range(ATTEMPTS):
            process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
            wait_until(lambda: bool(self.alive - before) or process.poll() is not None, SECONDS, 0.2)  # noqa: B023
            if came := self.alive - before:
                return process, came.pop()
            kill_session(process)
        raise AssertionError("the second node did not come up")


@contextlib.contextmanager
def two_nodes(home: Path, abroad: Path, **variables: str) -> Iterator[TwoNodes]:
    """The folder `home` is on the first node alone, if the user may hide it; `abroad` is the second's own."""
    from ray.cluster_utils import Cluster

    with _environment(**variables):
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        nodes = TwoNodes(cluster, home, abroad, variables)
        try:
            yield nodes
        finally:
            nodes.close()
    finally:
        cluster.shutdown()


def _covering(folder: Path, command: list[object]) -> list[str]:
    """The command in a place where the folder is empty."""
    plain = [str(part) for part in command]
    if not can_hide():
        return plain
    script = f'mount -t tmpfs none "{folder}" && exec "$@"'
    return ["unshare", "-rm", "sh", "-c", script, "sh", *plain]


@contextlib.contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
