"""Starting Ray or joining a cluster, and checking that trials fit into it."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from dataclasses import replace
from typing import Any

import ray

from bench.errors import UserError
from bench.scheduling.resources import Resources


def start_ray(address: str | None = None, cpus: int | None = None, gpus: float | None = None) -> None:
    """Join the cluster at this address, or start Ray on this machine alone."""
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)
    if address is not None:
        _refuse_dead(address)
    if ray.is_initialized():
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        options |= {"include_dashboard": False, "num_cpus": cpus, "num_gpus": gpus}
    try:
        ray.init(address=address or "local", **options)
    except ConnectionError as error:
        raise UserError(f"no Ray cluster at '{address}': {' '.join(str(error).split())}") from None
    except Exception as error:
        if "timed out during startup" not in str(error):  # Ray has no class for it
            raise
        raise UserError(
            "Ray did not start within 30 s: is the machine too busy? run it again later"
        ) from None
    if threading.current_thread() is threading.main_thread():
        # As for Ctrl-C; Ray's own handler would abort the process in the middle of a write.
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def _refuse_dead(address: str) -> None:
    """Ray would try for minutes to reach a cluster that is not there."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (colon and port.isdecimal()):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise UserError(
            f"no Ray cluster at '{address}': {error}; give --address its address, auto, or leave it out"
        ) from None


def settled(resources: Resources) -> Resources:
    """With the GPU share decided; a trial that fits nowhere would wait for ever, so that is said now."""
    cluster = ray.cluster_resources()
    if resources.gpus is None:
        resources = replace(resources, gpus=1.0 if cluster.get("GPU", 0) >= 1 else 0.0)
    if resources.at_once(cluster) < 1:
        wanted = ", ".join(f"{amount:g} {name}" for name, amount in _needed(resources).items())
        there = ", ".join(f"{cluster.get(name, 0):g} {name}" for name in _needed(resources))
        raise UserError(
            f"a trial needs {wanted} but Ray has {there}: lower --cpus-per-trial, --gpus-per-trial or --hosts"
        )
    return resources


def _needed(resources: Resources) -> dict[str, float]:
    return {name: amount for name, amount in resources.request().required_resources.items() if amount}
