"""A cluster of two nodes with one CPU each, the second of which does not see the first one's disk."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.kit.cli import environment, kill_session, wait_until

SECONDS = 240
"""Until the second node must be there; the machine may be busy with other things."""
ATTEMPTS = 4
"""Starts of the second node; Ray gives up by itself on a machine that is too busy."""
RAY = Path(sys.executable).with_name("ray")


@dataclass(frozen=True)
class TwoNodes:
    address: str
    second: subprocess.Popen[str]
    """The leader of a session to which all processes of the second node belong."""
    scratch: Path
    """What the second node takes for the place of temporary files."""


def can_hide() -> bool:
    """Whether the user may make mount namespaces, in which a folder can be covered up."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0


@contextlib.contextmanager
def two_nodes(home: Path, abroad: Path, **variables: str) -> Iterator[TwoNodes]:
    """The folder `home` is on the first node alone, if the user may hide it; `abroad` is the second's own."""
    from ray.cluster_utils import Cluster

    scratch = abroad / "tmp"
    scratch.mkdir(parents=True)
    with _environment(**variables):
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    command = _covering(home, [RAY, "start", "--address", cluster.address, "--num-cpus", "1", "--block"])
    own = environment(BENCH_CACHE=str(abroad / "cache"), TMPDIR=str(scratch), **variables)

    def both() -> bool:
        return bool(sum(node["Alive"] for node in cluster.global_state.node_table()) == 2)

    second = None
    try:
        for _ in range(ATTEMPTS):
            second = started = subprocess.Popen(
                command,
                env=own,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
            if wait_until(lambda: both() or started.poll() is not None, SECONDS) and both():  # noqa: B023
                break
            kill_session(started)
        assert second is not None and both(), "the second node did not come up"
        yield TwoNodes(cluster.address, second, scratch)
    finally:
        if second is not None:
            kill_session(second)
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
