"""The servers of several cells at once: each takes the replies of its own clients into its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from bench.engine.hosts.base import Combining
from bench.engine.hosts.joint import JointAnswers
from bench.engine.hosts.replies import StackedReplies
from bench.engine.hosts.servers import StackedServers
from bench.engine.hosts.stack import Stack, fill, leaves_in, refill
from methods.base import Reply, State
from methods.core.stacking import is_stacked


def joint_combining() -> JointAnswers[Combining, State]:
    """For servers whose clients' replies are in the same stack, set of samples by set."""
    return JointAnswers(_stack_of_replies, combined_together)


def _stack_of_replies(request: Combining) -> object:
    replies = request.replies
    return (id(replies.outcomes), replies.of_set) if isinstance(replies, StackedReplies) else id(request)


def combined_together(requests: Sequence[Combining]) -> list[State]:
    """The next state of every server; raises an exception if a method's server cannot be stacked.

    All replies are in one stack, and of one set of samples: in other sets, clients have other sizes.
    """
    task = requests[0].problem.task
    servers = StackedServers(requests)
    replies = _stacked(servers.stack, [each.replies for each in requests])
    shape: list[Any] = []

    def of_one(*own: Tensor) -> list[Tensor]:
        setting, before = servers.one(own)
        received = [reply._replace(content=fill(reply.content, own)) for reply in replies]
        after = setting.method.aggregate(replace(task, optimiser=setting.optimiser), before, received)
        sources = _sources(list(leaves_in(before)), list(leaves_in(after)))
        shape[:] = [after, sources]
        return [leaf for leaf, source in zip(leaves_in(after), sources, strict=True) if source is None]

    made = [leaf.unbind(0) for leaf in servers.stack.mapped(of_one)]
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


def _sources(before: Sequence[Tensor], after: Sequence[Tensor]) -> list[int | Tensor | None]:
    """Leaf by leaf of the next state: its place in the last one, itself if it is the same for all cells, or
    None if it is new in every cell."""
    places = {id(leaf): place for place, leaf in enumerate(before)}
    return [places.get(id(leaf), None if is_stacked(leaf) else leaf) for leaf in after]


def _stacked(stack: Stack, of_cells: Sequence[Any]) -> list[Reply]:
    """The replies of every client, with slots for what cells have been sent."""
    first = of_cells[0]
    cells = [replies.cell for replies in of_cells]
    whole = cells == list(range(len(first.outcomes[0].sound[0])))
    found = []
    for outcome in first.outcomes:
        for at, row in outcome.clients_of(first.of_set):
            tensors = [tensor[at] if whole else tensor[at, cells] for tensor in outcome.tensors]
            slots = stack.add_by_client({str(place): tensor for place, tensor in enumerate(tensors)})
            content = fill(outcome.content, list(slots.values()))
            found.append(Reply(row.client, row.place.size, content))
    return found
