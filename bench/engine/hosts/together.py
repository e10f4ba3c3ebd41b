"""The clients of several cells at once: cells that differ in numbers alone and share their samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor

from bench.engine.hosts.base import Work
from bench.engine.hosts.pool import Pool, evenly_cut
from bench.engine.hosts.stack import Stack, fill, finite_rows, refill
from bench.engine.variation import AlikeError, Variation, with_number
from methods.base import Message, Reply
from methods.core.batches import PaddedBatches
from methods.core.loss_terms import LossTerms
from methods.core.tree import leaves_of

if TYPE_CHECKING:
    from bench.engine.hosts.stacked import StackedHost


class Share(NamedTuple):
    """What one cell has its clients do in a round."""

    host: StackedHost
    messages: dict[int, Message]


def train_together(number: int, cells: Sequence[Share]) -> list[list[Reply]]:
    """The clients of a round, in all cells at once: these differ in numbers alone and share their samples."""
    first = cells[0]
    works: list[list[Work]] = [[] for _ in cells]
    for pool in first.host.pools(number, list(first.messages)):
        clients = [client for client in first.messages if client in pool.clients]
        for part in evenly_cut(clients, first.host.at_once(pool)):
            for of_cell, more in zip(works, stacked_works(number, cells, part, pool), strict=True):
                of_cell += more
    # Only now that nothing can go wrong any more, as clients' states change here.
    return [cell.host.finished(of_cell) for cell, of_cell in zip(cells, works, strict=True)]


def stacked_works(number: int, cells: Sequence[Share], clients: list[int], pool: Pool) -> list[list[Work]]:
    """What these clients compute, cell by cell; a ValueError if the cells do not fit together."""
    hosts = [cell.host for cell in cells]
    recipe, task = hosts[0].problem.recipe, hosts[0].stacked_task(number)
    stack = Stack(len(cells))
    states = stack.add([[host.state(client) for client in clients] for host in hosts])
    contents = stack.add([[cell.messages[client] for client in clients] for cell in cells])
    parts = stack.add_by_client(hosts[0].cut(number, clients, pool))
    settings = [host.setting(number) for host in hosts]
    variation = Variation.among(settings)
    numbers = stack.add_by_cell(variation.tensors(next(iter(task.initial.values()))))
    shape: list[Any] = []

    def local(*own: Tensor) -> tuple[list[Tensor], dict[str, Tensor]]:
        terms = LossTerms() if task.records_losses else None
        prepare = recipe.preparation(terms)
        batches = PaddedBatches(x=pool.x, y=pool.y, most=pool.most, prepare=prepare, **fill(parts, own))
        setting = variation.applied(settings[0], fill(numbers, own))
        its_task = replace(task, optimiser=setting.optimiser) if numbers else task
        result = setting.method.local(its_task, fill(states, own), fill(contents, own), batches)
        shape[:] = result
        return list(leaves_of(result)), {} if terms is None else terms.means()

    outputs, noted = stack.mapped(local)
    rows = [(client, cell) for client in range(len(clients)) for cell in range(len(cells))]
    outputs = [_by_row(output, len(cells)) for output in outputs]
    sound = finite_rows(outputs, len(rows))
    columns = [output.unbind(0) for output in outputs]
    named = {name: _by_row(means, len(cells)).unbind(0) for name, means in noted.items()}
    works: list[list[Work]] = [[] for _ in cells]
    for row, (k, cell) in enumerate(rows):
        leaves = iter([column[row] for column in columns])
        content, state = (refill(nest, leaves) for nest in shape)
        terms = {name: means[row] for name, means in named.items()} or None
        size = pool.clients[clients[k]].size
        works[cell].append(Work(clients[k], size, content, state, terms, sound[row]))
    return works


def _by_row(output: Tensor, cells: int) -> Tensor:
    """With clients and cells in one dimension."""
    return output if cells == 1 else output.flatten(0, 1)


def fit_together(host: StackedHost, other: StackedHost, number: int) -> bool:
    """Whether two cells differ in numbers alone, and their clients train on the same samples."""
    try:
        Variation.among([host.setting(number), other.setting(number)])
    except AlikeError:
        return False
    return host.makes_the_same(other)


def steering(number: int, cells: Sequence[Share]) -> list[tuple[float, ...]]:
    """Cell by cell its values of the numbers that cannot be tensors, as they decide what is computed.

    They are found by trying each of them with one client. Empty where none of them alone is to blame.
    """
    first = cells[0]
    pool = next(first.host.pools(number, list(first.messages)))
    client = next(client for client in first.messages if client in pool.clients)
    varied = Variation.among([cell.host.setting(number) for cell in cells]).numbers
    found = []
    for path, values in varied.items():
        other = next(value for value in values if value != values[0])
        beside = Share(
            first.host.changed(with_number(first.host.setting(number), path, other)), first.messages
        )
        try:
            stacked_works(number, [first, beside], [client], pool)
        except Exception:
            found.append(values)
    return [tuple(values[position] for values in found) for position in range(len(cells))]
