"""The clients of several cells at once: cells that differ in numbers and samples alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from bench.engine.devices import sent_together
from bench.engine.hosts.pool import Pool, evenly_cut
from bench.engine.hosts.replies import Outcome, Row, StackedReplies
from bench.engine.hosts.sample_sets import JointPool, Sets
from bench.engine.hosts.seeds import without_seed
from bench.engine.hosts.stack import Slot, Stack, fill, finite_rows, refill
from bench.engine.variation import AlikeError, Setting, Variation, with_number
from methods.base import Message
from methods.core.batches import PaddedBatches, stack_orders, steps_of
from methods.core.loss_terms import LossTerms
from methods.core.tree import leaves_of

if TYPE_CHECKING:
    from bench.engine.hosts.stacked import StackedHost


class Share(NamedTuple):
    """What one cell has its clients do in a round."""

    host: StackedHost
    messages: dict[int, Message]


def train_together(number: int, sets: Sets, joint: JointPool | None = None) -> list[list[StackedReplies]]:
    """The clients of a round, in all cells at once; replies cell by cell.

    `joint` keeps the samples of several sets.
    """
    outcomes = [
        stacked_outcome(number, sets, part, pool)
        for pool, rows in _rows(number, sets, joint)
        for part in evenly_cut(rows, sets[0][0].host.at_once(pool))
    ]
    # Only now that nothing can go wrong any more, as clients' states change here.
    replies = [
        [StackedReplies(outcomes, position, column) for column in range(len(cells))]
        for position, cells in enumerate(sets)
    ]
    for cells, of_set in zip(sets, replies, strict=True):
        for cell, of_cell in zip(cells, of_set, strict=True):
            cell.host.keep(of_cell)
    return replies


def _rows(number: int, sets: Sets, joint: JointPool | None) -> Iterator[tuple[Pool, list[Row]]]:
    """The clients that take part, pool by pool."""
    first = sets[0][0]
    if len(sets) == 1:
        for pool in first.host.pools(number, list(first.messages)):
            here = [client for client in first.messages if client in pool.clients]
            yield pool, [Row(0, client, pool.clients[client]) for client in here]
        return
    together = (joint or JointPool()).of([cells[0].host for cells in sets])
    if together is None:
        raise AlikeError("there is no room for the samples of all cells")
    rows = [(position, client) for position, cells in enumerate(sets) for client in cells[0].messages]
    yield together, [Row(*row, together.clients[row]) for row in rows]


def stacked_outcome(number: int, sets: Sets, rows: Sequence[Row], pool: Pool) -> Outcome:
    """What these clients compute in all cells; an AlikeError if the cells do not fit together."""
    first = [cell.host for cell in sets[0]]
    recipe, task = first[0].problem.recipe, first[0].stacked_task(number)
    if any(cells[0].host.problem.train is not first[0].problem.train for cells in sets):
        task = without_seed(task)
    columns = range(len(first))
    stack = Stack(len(first))
    shares = [[sets[row.of_set][column] for row in rows] for column in columns]
    states = stack.add(
        [[s.host.seen_in_rounds(r.client) for s, r in zip(of, rows, strict=True)] for of in shares]
    )
    contents = stack.add([[s.messages[r.client] for s, r in zip(of, rows, strict=True)] for of in shares])
    parts = stack.add_by_client(_cut(number, [cells[0].host for cells in sets], rows, pool))
    settings = _settings(number, sets)
    variation = Variation.among(settings)
    tensors = variation.tensors(next(iter(first[0].problem.task.initial.values())))
    if len(first) == 1:
        numbers = stack.add_by_row([tensor[[row.of_set for row in rows]] for tensor in tensors])
    else:
        numbers = stack.add_by_cell(tensors)
    x, y = pool.sources([row.place for row in rows])
    most = max(row.place.size for row in rows)
    shape: list[Any] = []

    def local(*own: Tensor) -> tuple[list[Tensor], dict[str, Tensor]]:
        terms = LossTerms() if task.records_losses else None
        prepare = recipe.preparation(terms)
        batches = PaddedBatches(x=x, y=y, most=most, prepare=prepare, **fill(parts, own))
        setting = variation.applied(settings[0], fill(numbers, own))
        its_task = replace(task, optimiser=setting.optimiser) if numbers else task
        result = setting.method.local(its_task, fill(states, own), fill(contents, own), batches)
        shape[:] = result
        return list(leaves_of(result)), {} if terms is None else terms.means()

    outputs, noted = stack.mapped(local)
    content, state = (refill(nest, slots) for slots in [map(Slot, count())] for nest in shape)
    outputs = [_by_cell(output, len(first)) for output in outputs]
    terms = {name: _by_cell(means, len(first)) for name, means in noted.items()}
    sound = finite_rows([output.flatten(0, 1) for output in outputs], len(rows) * len(first))
    of_rows = [sound[at * len(first) : (at + 1) * len(first)] for at in range(len(rows))]
    return Outcome(rows, content, state, outputs, terms, of_rows)


def _settings(number: int, sets: Sets) -> list[Setting]:
    """Those of the cells of a set, which all sets have; with one cell per set, those of all of them."""
    cells = sets[0] if len(sets[0]) > 1 else [cells[0] for cells in sets]
    return [cell.host.setting(number) for cell in cells]


def _cut(
    number: int, hosts: Sequence[StackedHost], rows: Sequence[Row], pool: Pool
) -> dict[str, Tensor | None]:
    """The steps of these clients; a host per set."""
    problems = [hosts[row.of_set].problem for row in rows]
    counts = [row.place.size for row in rows]
    starts = [row.place.start for row in rows]
    orders = [
        pool.positions(row.place.size, problem.orders(row.client, number, row.place.size))
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


def steering(number: int, cells: Sequence[Share]) -> list[tuple[float, ...]]:
    """Cell by cell its values of the numbers that cannot be tensors, as they decide what is computed.

    They are found by trying each of them with one client. Empty where none of them alone is to blame.
    """
    first = cells[0]
    pool, (row, *_) = next(_rows(number, [[first]], None))
    varied = Variation.among([cell.host.setting(number) for cell in cells]).numbers
    found = []
    for path, values in varied.items():
        other = next(value for value in values if value != values[0])
        beside = Share(
            first.host.changed(with_number(first.host.setting(number), path, other)), first.messages
        )
        try:
            stacked_outcome(number, [[first, beside]], [row], pool)
        except Exception:
            found.append(values)
    return [tuple(values[position] for values in found) for position in range(len(cells))]
