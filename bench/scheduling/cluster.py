"""Starting Ray or joining a cluster, and checking that trials fit into it."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import ray

from bench.engine.devices import gpus_per_trial
from bench.errors import UserError
from bench.scheduling import head
from bench.scheduling.node_versions import check_versions
from bench.scheduling.resources import Resources, nodes_in_words


def start_ray(address: str | None = None, cpus: int | None = None, gpus: float | None = None) -> None:
    """Join the cluster at this address, or start Ray on this machine alone."""
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)
    if address is not None:
        _refuse_client(address)
        _refuse_dead(address)
    if not ray.is_initialized():
        _start(address, cpus, gpus)
    check_versions(_alive())


def _start(address: str | None, cpus: int | None, gpus: float | None) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    address = address or head.address()
    if address is None:
        options |= {"include_dashboard": False, "num_cpus": cpus, "num_gpus": gpus}
    try:
        ray.init(address=address or "local", **options)
    except ConnectionError as error:
        raise UserError(
            f"no Ray cluster at '{address}': {' '.join(str(error).split())}; if there is one, it may ask "
            "for a token: set RAY_AUTH_MODE=token, with the token in ~/.ray/auth_token"
        ) from None
    except Exception as error:
        if "timed out during startup" not in str(error):  # Ray has no class for it
            raise
        raise UserError(
            "Ray did not start within 30 s: is the machine too busy? run it again later"
        ) from None
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


def _refuse_client(address: str) -> None:
    """A driver outside the cluster would have no node for its run folder."""
    if address.startswith("ray://"):
        raise UserError(
            f"--address {address}: bench must run on a node of the cluster; start it on one, with --address "
            "auto, or submit it as a Ray job"
        )


def _refuse_dead(address: str) -> None:
    """Say so now if no cluster is there; an address without a port is left to Ray."""
    _, colon, port = address.rpartition(":")
    if not (colon and port.isdecimal()):
        return
    try:
        head.reach(address)
    except (OSError, OverflowError) as error:
        raise UserError(
            f"no Ray cluster at '{address}': {error}; give --address its address, auto, or leave it out"
        ) from None


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
