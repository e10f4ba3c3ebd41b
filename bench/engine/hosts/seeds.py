"""Cells of several seeds at once: their clients have other samples, and models that begin elsewhere.

What a method computes for a client may use neither the seed nor the initial model then, as there are several
of both. Both are hidden, so that a method that uses them is found out, and computed seed by seed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from bench.engine.variation import AlikeError
from methods.base import Task
from methods.core.tree import Tree

if TYPE_CHECKING:
    from bench.engine.hosts.stacked import StackedHost


def may_join(host: StackedHost, other: StackedHost) -> bool:
    """Whether cells of two seeds have models of the same kind, and keep their samples from round to round."""
    one, two = host.problem.task, other.problem.task
    return (
        not host.resamples
        and (one.domains, one.clients, one.per_round) == (two.domains, two.clients, two.per_round)
        and _have_the_same_rest(one, two)
    )


def _have_the_same_rest(one: Task, two: Task) -> bool:
    """Whether all is equal that a model keeps to itself: frozen weights, and buffers that are not saved."""
    kept, other = (
        {
            name: tensor
            for name, tensor in [*task.model.named_parameters(), *task.model.named_buffers()]
            if name not in task.initial
        }
        for task in (one, two)
    )
    return kept.keys() == other.keys() and all(torch.equal(kept[name], other[name]) for name in kept)


def without_seed(task: Task) -> Task:
    """The task of several seeds: what is the same for all of them."""
    initial = Tree({})
    initial._leaves = _Names(dict.fromkeys(task.initial))
    shared = replace(task, seed=_SeveralSeeds(), initial=initial)
    shared.__dict__["device"] = task.device  # which it would look up in the initial model
    return shared


def _refuse(*_: object) -> NoReturn:
    raise AlikeError("what clients compute depends on the seed")


class _SeveralSeeds(int):
    __format__ = __str__ = __int__ = __index__ = _refuse


class _Names(dict[str, Any]):
    """Of the initial model the names alone are the same for all seeds."""

    __getitem__ = get = values = items = _refuse
