"""A partition as a table: one column per class if they fit on the screen, or one bar per class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from bench.data.clients import class_counts, tested_counts

if TYPE_CHECKING:
    from bench.data.base import Dataset
    from bench.data.partitions import Client, Partition

BLOCKS = " ▁▂▃▄▅▆▇█"
MOST_BARS = 60
LARGEST = 3
BORDERS = 3
"""Characters of a column that are not its content: two spaces and a line."""


def partition_table(dataset: Dataset, partition: Partition, width: int) -> Table:
    """Each client's domain, size and training samples per class.

    Of what is unseen, which comes last, the samples are those that models are tested on.
    """
    counts = np.concatenate([class_counts(partition, dataset), tested_counts(partition, dataset)])
    everyone = [*partition.clients, *partition.unseen]
    names = [*map(str, range(len(partition.clients))), *["unseen"] * len(partition.unseen)]
    clients = list(zip(names, everyone, counts.tolist(), strict=True))
    most = int(counts.max())
    columns = [
        max(len(name), len(_shaded(max(column), most)))
        for name, column in zip(dataset.classes, counts.T.tolist(), strict=True)
    ]
    first = len("client") + max(len(_domain(client)) for client in everyone) + len("samples")
    fits = first + sum(columns) + BORDERS * (3 + len(columns)) + 1 <= width
    return _wide(dataset, clients, most) if fits else _compact(dataset, clients)


def _wide(dataset: Dataset, clients: list[tuple[str, Client, list[int]]], most: int) -> Table:
    table = Table("client", "domain", "samples", *dataset.classes)
    for name, client, row in clients:
        cells = [_shaded(count, most) for count in row]
        table.add_row(name, _domain(client), str(sum(row)), *cells)
    return table


def _compact(dataset: Dataset, clients: list[tuple[str, Client, list[int]]]) -> Table:
    together = -(-len(dataset.classes) // MOST_BARS)
    starts = range(0, len(dataset.classes), together)
    bars = [[sum(row[start : start + together]) for start in starts] for _, _, row in clients]
    most = max(map(max, bars))
    per_bar = "class" if together == 1 else f"{together} classes"
    table = Table("client", "domain", "samples", "classes", f"a bar per {per_bar}", "largest classes")
    for column in table.columns:
        column.no_wrap = True
    for (name, client, row), heights in zip(clients, bars, strict=True):
        table.add_row(
            name,
            _domain(client),
            str(sum(row)),
            str(sum(count > 0 for count in row)),
            "".join(_block(height, most) for height in heights),
            _largest(dataset.classes, row),
        )
    return table


def _largest(classes: tuple[str, ...], row: list[int]) -> str:
    ranked = sorted(zip(row, classes, strict=True), key=lambda pair: -pair[0])
    return ", ".join(f"{name} {count}" for count, name in ranked[:LARGEST] if count)


def _domain(client: Client) -> str:
    return client.domain or "mixed"


def _shaded(count: int, most: int) -> str:
    return f"{_block(count, most)} {count}"


def _block(count: int, most: int) -> str:
    """Rounded up, so that even one sample can be seen."""
    return BLOCKS[-(-8 * count // max(most, 1))]
