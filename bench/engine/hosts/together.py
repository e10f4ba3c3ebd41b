"""The clients of several cells at once: cells that differ in numbers and seed alone."""

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
from bench.engine.hosts.seeds import JointPool, by_seed, may_join, without_seed
from bench.engine.hosts.stack import Slot, Stack, fill, finite_rows, refill
from bench.engine.variation import AlikeError, Variation, with_number
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


def train_together(
    number: int, cells: Sequence[Share], joint: JointPool | None = None
) -> list[StackedReplies]:
    """The clients of a round, in all cells at once: these differ in numbers and seed alone.

    Cells of one seed share their samples. Of every seed there are cells with the same settings, and `joint`
    keeps the samples of all seeds.
    """
    seeds = by_seed(cells)
    outcomes = [
        stacked_outcome(number, seeds, part, pool)
        for pool, rows in _rows(number, seeds, joint)
        for part in evenly_cut(rows, cells[0].host.at_once(pool))
    ]
    # Only now that nothing can go wrong any more, as clients' states change here.
    replies = {
        share.host: StackedReplies(outcomes, seed, column)
        for seed, of_seed in enumerate(seeds)
        for column, share in enumerate(of_seed)
    }
    for host, of_cell in replies.items():
        host.keep(of_cell)
    return [replies[cell.host] for cell in cells]


def _rows(
    number: int, seeds: Sequence[Sequence[Share]], joint: JointPool | None
) -> Iterator[tuple[Pool, list[Row]]]:
    """The clients that take part, pool by pool."""
    first = seeds[0][0]
    if len(seeds) == 1:
        for pool in first.host.pools(number, list(first.messages)):
            here = [client for client in first.messages if client in pool.clients]
            yield pool, [Row(0, client, pool.clients[client]) for client in here]
        return
    together = (joint or JointPool()).of([cells[0].host for cells in seeds])
    if together is None:
        raise AlikeError("there is no room for the samples of all seeds")
    rows = [(seed, client) for seed, cells in enumerate(seeds) for client in cells[0].messages]
    yield together, [Row(*row, together.clients[row]) for row in rows]


def stacked_outcome(
    number: int, seeds: Sequence[Sequence[Share]], rows: Sequence[Row], pool: Pool
) -> Outcome:
    """What these clients compute in all cells; an AlikeError if the cells do not fit together."""
    first = [cell.host for cell in seeds[0]]
    recipe, task = first[0].problem.recipe, first[0].stacked_task(number)
    if len(seeds) > 1:
        task = without_seed(task)
    columns = range(len(first))
    stack = Stack(len(first))
    shares = [[seeds[row.seed][column] for row in rows] for column in columns]
    states = stack.add([[s.host.state(r.client) for s, r in zip(of, rows, strict=True)] for of in shares])
    contents = stack.add([[s.messages[r.client] for s, r in zip(of, rows, strict=True)] for of in shares])
    parts = stack.add_by_client(_cut(number, [cells[0].host for cells in seeds], rows, pool))
    settings = [host.setting(number) for host in first]
    variation = Variation.among(settings)
    numbers = stack.add_by_cell(variation.tensors(next(iter(first[0].problem.task.initial.values()))))
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
    content, state = (refill(nest, slots) for slots in [map(Slot, count())] for nest in shape)
    outputs = [_by_cell(output, len(first)) for output in outputs]
    terms = {name: _by_cell(means, len(first)) for name, means in noted.items()}
    sound = finite_rows([output.flatten(0, 1) for output in outputs], len(rows) * len(first))
    by_row = [sound[at * len(first) : (at + 1) * len(first)] for at in range(len(rows))]
    return Outcome(rows, content, state, outputs, terms, by_row)


def _cut(
    number: int, hosts: Sequence[StackedHost], rows: Sequence[Row], pool: Pool
) -> dict[str, Tensor | None]:
    """The steps of these clients; a host per seed."""
    problems = [hosts[row.seed].problem for row in rows]
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
    return sent_together(parts, pool.y.device)


def _by_cell(output: Tensor, cells: int) -> Tensor:
    """With a dimension for cells behind that for clients."""
    return output.unsqueeze(1) if cells == 1 else output


def fit_together(host: StackedHost, others: Sequence[StackedHost], number: int) -> bool:
    """Whether a cell differs from these, which fit together, in numbers and seed alone."""
    try:
        Variation.among([host.setting(number), others[0].setting(number)])
    except AlikeError:
        return False
    samples = host.problem.train
    of_its_seed = next((other for other in others if other.problem.train is samples), None)
    return may_join(host, others[0]) if of_its_seed is None else host.makes_the_same(of_its_seed)


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
