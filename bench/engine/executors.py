"""Which executor computes a cell: chosen by a rule that is printed, or by the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import nn

from bench.engine.hosts import Hosts, LoopHost, Problem
from bench.engine.stacked import StackedHost
from bench.errors import UserError, nearest
from methods.parts.clip import PromptedClassifier
from methods.parts.task import Task

if TYPE_CHECKING:
    from bench.cells import Conditions

EXECUTORS = ("auto", "loop", "stacked", "ray")


@dataclass(frozen=True)
class RunningHosts:
    name: str
    hosts: Hosts
    close: Callable[[], None]


def check_executor(name: str) -> None:
    if name not in EXECUTORS:
        raise UserError(f"unknown executor '{name}'; {nearest(name, EXECUTORS)}")


def choose(task: Task) -> tuple[str, str]:
    """The executor for a task, and why."""
    if task.has_batch_norm:
        return "loop", "batch norm cannot be stacked"
    if any(isinstance(module, nn.modules.conv._ConvNd) for module in task.model.modules()):
        return "loop", "convolutions gain nothing from stacking"
    if isinstance(task.model.classifier, PromptedClassifier):
        return "loop", "a text tower has work enough with one client, and a stack of them takes much memory"
    return "stacked", "a model without convolutions runs fastest stacked"


def make_hosts(problem: Problem, config: Mapping[str, Any], conditions: Conditions) -> RunningHosts:
    check_executor(conditions.executor)
    name = choose(problem.task)[0] if conditions.executor == "auto" else conditions.executor
    if name == "ray":
        from bench.engine.ray_hosts import RayHosts

        remote = RayHosts(sorted(problem.train), config, conditions)
        return RunningHosts(name, remote, remote.close)
    if name == "stacked" and problem.task.has_batch_norm:
        raise UserError("the executor 'stacked' cannot run a model with batch norm; choose 'loop' or 'ray'")
    kind = StackedHost if name == "stacked" else LoopHost
    return RunningHosts(name, kind(problem), lambda: None)
