"""A cluster of two nodes, the second of which can be killed and replaced by another one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

ATTEMPTS = 4
"""Starts of a node; Ray gives up by itself on a machine that is too busy."""


class SecondNode:
    """The node that is lost."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.address: str = cluster.address
        self._node = self._started()

    def replace(self) -> None:
        """Kill all processes of the node, and start another one."""
        self._cluster.remove_node(self._node, allow_graceful=False)
        self._node = self._started()

    def _started(self) -> Any:
        return started(lambda: self._cluster.add_node(num_cpus=1))


def started(start: Callable[[], Any]) -> Any:
    """What starts at last on a machine that may be too busy for Ray."""
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(Exception):  # Ray has no class for it
            return start()
    return start()


@contextlib.contextmanager
def second_node(**variables: str) -> Iterator[SecondNode]:
    """Beside a first one on which the driver runs; both have one CPU and these environment variables."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        options = {"num_cpus": 1, "include_dashboard": False}
        cluster = started(lambda: Cluster(initialize_head=True, head_node_args=options))
        try:
            yield SecondNode(cluster)
        finally:
            cluster.shutdown()
