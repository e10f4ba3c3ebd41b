"""Starting Ray or joining a cluster, and checking that trials fit into it."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray

from bench.cluster import local_ray
from bench.cluster.joining import refuse_private, shared_cluster
from bench.cluster.node_versions import check_versions
from bench.cluster.ray_instances import ask
from bench.cluster.resources import Resources, nodes_in_words
from bench.engine.devices import gpus_per_trial
from bench.errors import UserError
from bench.startup.shadowed_packages import refuse_packages_in

_known_shared: set[str] = set()
"""Addresses of clusters that this process has joined."""


def start_ray(address: str | None = None, cpus: int | None = None, gpus: float | None = None) -> str | None:
    """Join the cluster at this address, or start Ray on this machine only.

    Returns a sentence about the cluster if this call has joined one.
    """
    for name, level in (("ray", logging.ERROR), ("ray.tune", logging.CRITICAL)):
        logging.getLogger(name).setLevel(level)
    refuse_packages_in(Path.cwd())  # Ray puts it first in the workers' path
    joined = None
    if ray.is_initialized():
        if address is not None:
            _check_present(address)
    elif address is not None:
        joined = _join(address)
    else:
        _start(cpus, gpus)
    check_versions(_alive())
    return joined


def _join(address: str) -> str:
    found = shared_cluster(address)
    try:
        _connect(found)
    except ConnectionError as error:
        raise UserError(f"no Ray cluster at '{found}': {' '.join(str(error).split())}") from None
    _known_shared.add(_current_address())
    kinds = [kind for kind in ("CPU", "GPU") if any(node.get(kind) for node in nodes())]
    return f"joined the Ray cluster at {found}: {nodes_in_words(nodes(), kinds)}"


def _check_present(address: str) -> None:
    """Refuse the Ray that this process uses already, unless it is the cluster that it was told to join."""
    present = _current_address()
    if present not in _known_shared:
        wanted = present if address == "auto" else shared_cluster(address)
        for instance in ask(present):
            refuse_private(instance)
        if wanted.rpartition(":")[2] != present.rpartition(":")[2]:  # hosts have several names
            raise UserError(
                f"--address {address}: this process uses the Ray at '{present}'; call ray.shutdown() first"
            )
        _known_shared.add(present)


def _current_address() -> str:
    address: str = ray.get_runtime_context().gcs_address
    return address


def _start(cpus: int | None, gpus: float | None) -> None:
    """Connect to the Ray that was begun beside the imports, or else start it now."""
    if began := local_ray.address():
        with suppress(ConnectionError):  # it has died just now
            _connect(began)
            return
    try:
        _connect("local", include_dashboard=False, num_cpus=cpus, num_gpus=gpus)
    except Exception as error:
        if "timed out during startup" not in str(error):  # Ray has no class for it
            raise
        raise UserError(
            "Ray did not start within 30 s: is the machine too busy? run it again later"
        ) from None


def _connect(address: str, **options: Any) -> None:
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)
    _keep_quiet()
    if threading.current_thread() is threading.main_thread():
        # As for Ctrl-C; Ray's own handler would abort the process in the middle of a write.
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def _keep_quiet() -> None:
    """Ray prints what its nodes publish, such as the end of a dead node's log, and has no option against it.

    What matters of it is told as the reason of a trial's failure.
    """
    from ray._private import worker

    worker.print_to_stdstream = lambda *_, **__: None


def nodes() -> list[Mapping[str, float]]:
    """What each node that can run anything has in total."""
    return [node["Resources"] for node in _alive()]


def _alive() -> list[dict[str, Any]]:
    computing = ("CPU", "GPU")
    return [
        node
        for node in ray.nodes()
        if node["Alive"] and any(node["Resources"].get(name) for name in computing)
    ]


def settled(resources: Resources) -> Resources:
    """With the GPU share decided; a trial that fits nowhere would wait for ever, so that is said now."""
    there = nodes()
    if resources.gpus is None:
        most = max((node.get("GPU", 0) for node in there), default=0)
        resources = replace(resources, gpus=gpus_per_trial(None, most))
    if resources.at_once(there) < 1:
        raise UserError(
            f"a trial needs {_needed(resources, len(there) > 1)} but Ray has "
            f"{nodes_in_words(there, _names(resources))}: lower --cpus-per-trial, --gpus-per-trial or --hosts"
        )
    return resources


def _needed(resources: Resources, apart: bool) -> str:
    """What a trial needs in words; with several nodes `apart`, what must be on one of them."""
    if not apart:
        return _amounts(resources.request().required_resources)
    first, *hosts = resources.request().bundles
    if not hosts:
        return f"{_amounts(first)} on one node"
    return f"{_amounts(first)}, and {_amounts(hosts[0])} on one node for each of {len(hosts)} hosts,"


def _amounts(amounts: Mapping[str, float]) -> str:
    return ", ".join(f"{amount:g} {name}" for name, amount in amounts.items() if amount)


def _names(resources: Resources) -> list[str]:
    return [name for name, amount in resources.request().required_resources.items() if amount]
