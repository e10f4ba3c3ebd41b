"""How long a plan will take here, and how much disk: measured on a few real steps, then multiplied."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch

from bench.engine.assembly import assemble
from bench.engine.durations import cell_seconds, encoders_to_apply
from bench.engine.executors import choose
from bench.engine.problem import Problem
from bench.errors import UserError
from bench.runs.request import RunRequest
from bench.startup.memory import available_bytes, peak_bytes
from bench.suite.planning import PlannedCell


def estimate(pending: Sequence[PlannedCell], request: RunRequest) -> list[str]:
    """Time, disk and resources of the pending cells, one line each."""
    if not pending:
        return ["nothing to run"]
    if request.address is not None:
        return ["time: not estimated for a cluster"]
    cpus, gpus = request.cpus_per_trial, request.gpus_per_trial
    cores, cards = os.cpu_count() or 1, torch.cuda.device_count()
    share = f"{cpus:g} CPU" + (f" and {gpus:g} GPU" if gpus else "")
    there = f"{cores} cores" + (f" and {cards} GPUs" if gpus else "")
    room = min(int(cores / cpus + 1e-9), int(cards / gpus + 1e-9) if gpus else len(pending))
    if room < 1:
        raise UserError(
            f"a trial needs {share} but this machine has {there}: lower --cpus-per-trial or --gpus-per-trial"
        )
    at_once = min(room, request.max_concurrent or room, len(pending))
    settings = {cell.config.workload: cell.config for cell in pending}
    if unread := encoders_to_apply(settings.values(), request.data_root):
        return [f"time: not estimated, since the features of {unread} are not computed yet"]
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, int(cpus)))
    try:
        by_setting = {key: cell_seconds(config, request.data_root) for key, config in settings.items()}
    finally:
        torch.set_num_threads(threads)
    total = sum(by_setting[cell.config.workload] for cell in pending)
    problem = assemble(pending[0].config, request.data_root).problem
    model_bytes = sum(leaf.nbytes for leaf in problem.task.initial.values())
    return [
        f"resources: {share} per trial, {at_once} at once on {there}",
        f"time: about {total / at_once / 60:.1f} min ({total / 60:.1f} CPU min of local steps; "
        "evaluation and server work come on top)",
        _memory(problem, model_bytes, at_once),
        f"disk: about {len(pending) * 0.1:.1f} MB of records, and up to "
        f"{2 * at_once * model_bytes / 1e6:.0f} MB of checkpoints per model while it runs",
    ]


def _memory(problem: Problem, model_bytes: int, at_once: int) -> str:
    """What a trial takes: as much as this process after a few steps, and what it holds for its clients.

    In a round these are a reply per client, and in a stack weights, gradients and the optimiser's state.
    """
    copies = 3 if choose(problem)[0] == "stacked" else 1
    per_trial = peak_bytes() + copies * model_bytes * len(problem.train)
    fitting = available_bytes() // per_trial
    advice = "" if fitting >= at_once else f"; use --max-concurrent {max(1, fitting)}"
    return (
        f"memory: about {per_trial / 1e9:.1f} GB per trial; {fitting} fit into the "
        f"{available_bytes() / 1e9:.1f} GB available{advice}"
    )
