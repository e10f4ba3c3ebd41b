"""The servers of several cells in one vmapped call: they take in replies, or predict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.engine.asked import Asked
from bench.engine.stacking.differing_numbers import differing_numbers, setting, with_values
from bench.engine.stacking.replies import StackedReplies
from bench.engine.stacking.stacked_tensors import Stack, fill, leaves_in, refill
from methods.base import FedAlgorithm, Reply, State
from methods.core.batches import PIECE, Samples
from methods.fast.vmap_levels import is_stacked


def combined_together(requests: Sequence[Asked]) -> list[State]:
    """The next state of every server.

    All replies are in one stack, and of one set of samples: in other sets, clients have other sizes.
    """
    task = requests[0].problem.task
    stack, server_with = _servers(requests)
    replies = _stacked_replies(stack, [each.given for each in requests])
    shape: list[Any] = []

    def of_one(*own: Tensor) -> list[Tensor]:
        method, before = server_with(own)
        received = [reply._replace(content=fill(reply.content, own)) for reply in replies]
        optimiser = method.optimiser or task.optimiser
        after = method.aggregate(task.with_optimiser(optimiser), before, received)
        sources = _sources(list(leaves_in(before)), list(leaves_in(after)))
        shape[:] = [after, sources]
        return [leaf for leaf, source in zip(leaves_in(after), sources, strict=True) if source is None]

    made = [leaf.unbind(0) for leaf in stack.mapped(of_one)]
    after, sources = shape
    states = []
    for cell, request in enumerate(requests):
        kept, new = list(leaves_in(request.server)), iter([leaf[cell] for leaf in made])
        leaves = [
            next(new) if source is None else kept[source] if isinstance(source, int) else source
            for source in sources
        ]
        states.append(refill(after, iter(leaves)))
    return states


def predicted_together(models: Sequence[Asked]) -> list[list[tuple[Tensor, float | None]]]:
    """What each global model predicts for the samples, which are the same for all: classes and losses."""
    task = models[0].problem.task
    if len({model.problem.task.seed for model in models}) > 1:
        task = task.for_several_seeds()
    stack, server_with = _servers(models)

    def on(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        """Predicted classes, and where losses are recorded their sum, model by model."""

        def of_one(*own: Tensor) -> tuple[Tensor, ...]:
            method, state = server_with(own)
            scores = method.predict(task, state, None, x)
            losses = [F.cross_entropy(scores, y, reduction="sum")] if task.records_losses else []
            return scores.argmax(dim=1), *losses

        found: tuple[Tensor, ...] = stack.mapped(of_one)
        return found

    with task.evaluation():
        by_set = [_model_by_model(on, samples) for samples in models[0].given]
    return [list(of_model) for of_model in zip(*by_set, strict=True)]


def _servers(
    requests: Sequence[Asked],
) -> tuple[Stack, Callable[[Sequence[Tensor]], tuple[FedAlgorithm, State]]]:
    """A stack of the cells' servers, and how to get one from its tensors: its method and its state."""
    stack = Stack(1)
    settings = [setting(each.problem.method, each.problem.task.optimiser) for each in requests]
    states = stack.add([[each.server for each in requests]])
    like = next(iter(requests[0].problem.task.initial.values()))
    numbers: Any = stack.add_by_client(differing_numbers(settings, like))
    stack.add_by_client({"cell": torch.arange(len(requests))})  # `vmap` needs something to map over

    def server_with(own: Sequence[Tensor]) -> tuple[FedAlgorithm, State]:
        return with_values(settings[0], fill(numbers, own)), fill(states, own)

    return stack, server_with


def _sources(before: Sequence[Tensor], after: Sequence[Tensor]) -> list[int | Tensor | None]:
    """Leaf by leaf of the next state: its place in the last one, itself if it is the same for all cells, or
    None if it is new in every cell."""
    places = {id(leaf): place for place, leaf in enumerate(before)}
    return [places.get(id(leaf), None if is_stacked(leaf) else leaf) for leaf in after]


def _stacked_replies(stack: Stack, of_cells: Sequence[Any]) -> list[Reply]:
    """The replies of every client, with slots for what cells have been sent."""
    first: StackedReplies = of_cells[0]
    cells = [replies.cell for replies in of_cells]
    whole = cells == list(range(len(first.outcomes[0].sound[0])))
    found = []
    for outcome in first.outcomes:
        for at in outcome.places_of(first.of_set):
            tensors = [tensor[at] if whole else tensor[at, cells] for tensor in outcome.tensors]
            slots = stack.add_by_client(dict(enumerate(tensors)))
            content = fill(outcome.content, list(slots.values()))
            found.append(Reply(outcome.rows[at].client, outcome.rows[at].size, content))
    return found


def _model_by_model(
    on: Callable[[Tensor, Tensor], tuple[Tensor, ...]], samples: Samples
) -> list[tuple[Tensor, float | None]]:
    pieces = zip(samples.x.split(PIECE), samples.y.split(PIECE), strict=True)
    classes, *losses = zip(*(on(x, y) for x, y in pieces), strict=True)
    guesses = torch.cat(classes, dim=1).unbind(0)
    if not losses:
        return [(each, None) for each in guesses]
    sums = torch.stack(losses[0]).sum(dim=0).tolist()
    return [(each, total / len(samples.y)) for each, total in zip(guesses, sums, strict=True)]
