"""Starts Ray for a request, and settles what each of its trials may use."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bench.cluster.nodes import settled, start_ray
from bench.cluster.resources import Resources
from bench.config.cell import CellConfig
from bench.engine.devices import device_in_cluster
from bench.engine.setting_checks import check_precisions
from bench.trials.request import ComputingRequest


def start(request: ComputingRequest, configs: Iterable[CellConfig], say: Callable[[str], None]) -> Resources:
    """Start Ray, or join the request's cluster and say which one; a UserError if cells cannot run there."""
    if joined := start_ray(request.address):
        say(joined)
    resources = settled(request.resources())
    if request.address is not None:  # on this machine, it was checked before the start
        check_precisions(configs, device_in_cluster(resources.gpus or 0.0))
    return resources
