"""Which executor computes a cell: chosen by a rule that is printed, or by the user."""

from __future__ import annotations

from torch import nn

from bench.config.cell import CellConfig
from bench.engine.clients.base import Hosts
from bench.engine.clients.debug import DebugHost
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.conditions import Conditions
from bench.engine.problem import Problem
from bench.errors import UserError, nearest
from bench.models.text_backbone import TextBackbone
from bench.records.cell_folder import CellFolder
from methods.core.tree import size_in_bytes
from methods.modules.clip import PromptedClassifier

EXECUTORS = ("auto", "loop", "stacked", "ray", "debug")
CONVOLUTIONS = (
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
)


def check_executor(name: str) -> None:
    if name not in EXECUTORS:
        raise UserError(f"unknown executor '{name}'; {nearest(name, EXECUTORS)}")


def choose(problem: Problem) -> tuple[str, str]:
    """The executor for a problem, and why."""
    task = problem.task
    if task.has_batch_norm:
        return "loop", "batch norm cannot be stacked"
    if isinstance(task.model.classifier, PromptedClassifier):
        return "loop", "a text tower has work enough with one client, and a stack of them takes much memory"
    if isinstance(task.model.encoder, TextBackbone):
        return "loop", "a language model has work enough with one client"
    convolutions = [m for m in task.model.modules() if isinstance(m, CONVOLUTIONS)]
    if not convolutions:
        return "stacked", "a model without convolutions runs fastest stacked"
    if any(layer.weight.requires_grad for layer in convolutions):
        return "loop", "convolutions gain nothing from stacking"
    if any(getattr(module, "fused_attn", False) for module in task.model.modules()):
        return "loop", "fused attention cannot be stacked"
    if _padding(problem) > WORTH_STACKING:
        return "loop", "clients of such unequal sizes would be stacked mostly with padding"
    return "stacked", "a frozen backbone runs fastest stacked where clients are of like sizes"


WORTH_STACKING = 1.5
"""A stack of small frozen transformers does 1.7 times the work of a loop in the same time."""


MOST_CELLS = 24
"""Cells of a stack; with more, a stack gains little and a kill loses more."""
STACK_BYTES = 2**30
"""What the parameters of a stack may take, with gradients and everything else that is as large."""
COPIES = 8
"""Tensors as large as the parameters that a step needs."""


def cells_at_once(problem: Problem, executor: str) -> tuple[int, str]:
    """How many cells that differ in hyperparameters and seed alone one process trains together, and why."""
    name = choose(problem)[0] if executor == "auto" else executor
    if name != "stacked":
        return 1, f"the executor {name} computes one cell at a time"
    task = problem.task
    if any(_has_weights(module) and not isinstance(module, nn.Linear) for module in task.model.modules()):
        return 1, "in a deep model cells share too little"  # `vit_mini`: 2 to 7 % for 3.6 × the memory
    clients = task.per_round or len(problem.train)
    room = STACK_BYTES // (COPIES * clients * size_in_bytes(task.initial))
    why = "cells that differ only in hyperparameters and seed are computed together"
    return max(1, min(MOST_CELLS, room)), why


def _has_weights(module: nn.Module) -> bool:
    """Whether it has parameters that belong to no module inside it."""
    return next(module.parameters(recurse=False), None) is not None


def _padding(problem: Problem) -> float:
    """Work of all clients stacked, padded to the largest, as a multiple of their own."""
    sizes = [len(samples.y) for samples in problem.train.values()]
    return len(sizes) * max(sizes) / sum(sizes)


def make_hosts(problem: Problem, config: CellConfig, conditions: Conditions, folder: CellFolder) -> Hosts:
    """The hosts of a cell's clients; `folder` is where the executor `debug` keeps what failed."""
    check_executor(conditions.executor)
    name = choose(problem)[0] if conditions.executor == "auto" else conditions.executor
    if name == "ray":
        from bench.engine.clients.ray import RayHosts

        return RayHosts(sorted(problem.train), config, conditions)
    if name == "debug":
        return DebugHost(problem, folder, config.cell_id, conditions.data_root)
    if name == "stacked" and problem.task.has_batch_norm:
        raise UserError("the executor 'stacked' cannot run a model with batch norm; choose 'loop' or 'ray'")
    return StackedHost(problem) if name == "stacked" else LoopHost(problem)
