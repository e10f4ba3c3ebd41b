"""The clients of several cells in one vmapped call; the layout says which cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bench.engine.devices import sent_together
from bench.engine.stacking.differing_numbers import differing_numbers, with_values
from bench.engine.stacking.replies import Outcome, StackedReplies
from bench.engine.stacking.samples import Pool, Row, evenly_cut
from bench.engine.stacking.stacked_tensors import Slot, Stack, fill, finite_rows, refill
from methods.core.batches import PaddedBatches, stack_orders, steps_of
from methods.core.loss_terms import LossTerms
from methods.core.tree import leaves_of

if TYPE_CHECKING:
    from bench.engine.clients.stacked import StackedHost
    from methods.base import Message


def train_together(
    number: int, sets: Sequence[Mapping[StackedHost, Mapping[int, Message]]], joined: Pool | None = None
) -> list[list[StackedReplies]]:
    """The clients of a round in all cells at once; replies set by set and cell by cell.

    A set has the hosts of cells that share their samples, each with the messages to its clients. If sets have
    several cells, there are cells with the same numbers, in the same order, in all sets. `joined` has the
    samples of several sets.
    """
    first, messages = next(iter(sets[0].items()))
    pools = first.pools(number, list(messages)) if joined is None else [joined]
    outcomes = [
        stacked_outcome(number, sets, part, pool)
        for pool in pools
        for part in evenly_cut(_rows(sets, pool), first.at_once(pool))
    ]
    # Only now that nothing can go wrong any more, as clients' states change here.
    cells = sum(map(len, sets))
    replies = [
        [StackedReplies(outcomes, place, column, cells) for column in range(len(of_set))]
        for place, of_set in enumerate(sets)
    ]
    for of_set, replies_of_set in zip(sets, replies, strict=True):
        for host, of_cell in zip(of_set, replies_of_set, strict=True):
            host.keep(of_cell)
    return replies


def _rows(sets: Sequence[Mapping[StackedHost, Mapping[int, Message]]], pool: Pool) -> list[Row]:
    """The clients that take part and have their samples in this pool; there may be room for a few only."""
    rows = {(row.of_set, row.client): row for row in pool.rows}
    asked = [(place, client) for place, cells in enumerate(sets) for client in next(iter(cells.values()))]
    return [rows[each] for each in asked if each in rows]


def stacked_outcome(
    number: int,
    sets: Sequence[Mapping[StackedHost, Mapping[int, Message]]],
    rows: Sequence[Row],
    pool: Pool,
) -> Outcome:
    """What these clients compute in all cells."""
    columns = len(sets[0])
    hosts, messages = [list(cells) for cells in sets], [list(cells.values()) for cells in sets]
    firsts = [of_set[0] for of_set in hosts]
    recipe, task = firsts[0].problem.recipe, firsts[0].stacked_task(number)
    if any(host.problem.train is not firsts[0].problem.train for host in firsts):
        task = task.for_several_seeds()
    stack = Stack(columns)
    states = stack.add(
        [[hosts[row.of_set][at].seen_in_rounds(row.client) for row in rows] for at in range(columns)]
    )
    contents = stack.add([[messages[row.of_set][at][row.client] for row in rows] for at in range(columns)])
    parts = stack.add_by_client(_cut(number, firsts, rows, pool))
    # Those of the cells of a set, which all sets have; with one cell per set, those of all of them.
    settings = [host.setting(number) for host in (hosts[0] if columns > 1 else firsts)]
    tensors = differing_numbers(settings, like=next(iter(firsts[0].problem.task.initial.values())))
    numbers: Any
    if columns == 1:
        of_rows = [row.of_set for row in rows]
        numbers = stack.add_by_client({name: tensor[of_rows] for name, tensor in tensors.items()})
    else:
        numbers = stack.add_by_cell(tensors)
    x, y = pool.sources(rows)
    most = max(row.size for row in rows)
    shape: list[Any] = []

    def local(*own: Tensor) -> tuple[list[Tensor], dict[str, Tensor]]:
        terms = LossTerms() if task.records_losses else None
        prepare = recipe.preparation(terms)
        batches = PaddedBatches(x=x, y=y, most=most, prepare=prepare, **fill(parts, own))
        method = with_values(settings[0], fill(numbers, own))
        its_task = task.with_optimiser(method.optimiser) if numbers else task
        result = method.local(its_task, fill(states, own), fill(contents, own), batches)
        shape[:] = result
        return list(leaves_of(result)), {} if terms is None else terms.means()

    outputs, noted = stack.mapped(local)
    content, state = (refill(nest, slots) for slots in [map(Slot, count())] for nest in shape)
    outputs = [_by_cell(output, columns) for output in outputs]
    terms = {name: _by_cell(means, columns) for name, means in noted.items()}
    sound = finite_rows([output.flatten(0, 1) for output in outputs], len(rows) * columns)
    by_row = [sound[at * columns : (at + 1) * columns] for at in range(len(rows))]
    return Outcome(rows, content, state, outputs, terms, by_row)


def _cut(
    number: int, hosts: Sequence[StackedHost], rows: Sequence[Row], pool: Pool
) -> dict[str, Tensor | None]:
    """The steps of these clients; a host per set."""
    problems = [hosts[row.of_set].problem for row in rows]
    counts = [row.size for row in rows]
    starts = [row.start for row in rows]
    orders = [
        pool.positions(row.size, problem.orders(row.client, number, row.size))
        for row, problem in zip(rows, problems, strict=True)
    ]
    size = min(problems[0].batch_size, max(counts))
    order, mask, live = stack_orders(orders, starts, size)
    keys = [problem.key(row.client, number) for row, problem in zip(rows, problems, strict=True)]
    parts: dict[str, Tensor | None] = {
        "order": order,
        "mask": mask,
        "live": live,
        "start": torch.tensor(starts),
        "steps": torch.tensor(steps_of(orders, size)),
        "samples": torch.tensor(counts),
        "key": torch.tensor(keys),
    }
    return sent_together(parts, pool.device)


def _by_cell(output: Tensor, cells: int) -> Tensor:
    """With a dimension for cells behind that for clients."""
    return output.unsqueeze(1) if cells == 1 else output
