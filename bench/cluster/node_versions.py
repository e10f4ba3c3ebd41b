"""Whether all nodes of a cluster have the same code; else cells of one table could not be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from bench.errors import UserError
from bench.records.provenance import code_versions

SECONDS = 120.0
"""Until a node must have answered; its first process takes a while to start."""


@ray.remote(num_cpus=0, max_retries=0)
def versions_there() -> dict[str, str]:
    return code_versions()


def check_versions(nodes: Sequence[Mapping[str, Any]]) -> None:
    """A UserError names the first node whose code differs from that of this process."""
    here = ray.get_runtime_context().get_node_id()
    answers = {
        node["NodeManagerAddress"]: versions_there.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
        ).remote()
        for node in nodes
        if node["NodeID"] != here
    }
    for address, answer in answers.items():
        compare_versions(address, _versions_of(address, answer), code_versions())


def _versions_of(address: str, answer: Any) -> dict[str, str]:
    try:
        found: dict[str, str] = ray.get(answer, timeout=SECONDS)
    except GetTimeoutError:
        raise UserError(
            f"node {address} did not start a process within {SECONDS:g} s; mend it, or take it out of the "
            "cluster, and run the same command again"
        ) from None
    except (RayError, ImportError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise UserError(
            f"node {address} cannot load bench ({reason}); install the version of this machine on it"
        ) from None
    return found


def compare_versions(address: str, there: Mapping[str, str], own: Mapping[str, str]) -> None:
    """A UserError names the first difference between a node and the driver's machine."""
    for name in sorted({*there, *own}):
        if there.get(name) != own.get(name):
            raise UserError(
                f"node {address} has {name} {there.get(name, 'missing')}, but the driver's machine has "
                f"{own.get(name, 'none')}; install the same version on both, so that their cells are alike"
            )
