"""A cluster of two nodes, the second of which can be killed and replaced by another one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
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
        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(Exception):  # whatever Ray says on a machine that is too busy
                return self._cluster.add_node(num_cpus=1)
        return self._cluster.add_node(num_cpus=1)


@contextlib.contextmanager
def second_node(**variables: str) -> Iterator[SecondNode]:
    """Beside a first one on which the driver runs; both have one CPU and these environment variables."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        try:
            yield SecondNode(cluster)
        finally:
            cluster.shutdown()
