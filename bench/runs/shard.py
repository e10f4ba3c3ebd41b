"""A part of a plan, for job arrays in which every job computes its own cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.errors import UserError

if TYPE_CHECKING:
    from bench.suite.planning import PlannedCell


@dataclass(frozen=True)
class Shard:
    """Part `number` of `count`."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def of(self, cells: Sequence[PlannedCell]) -> tuple[PlannedCell, ...]:
        """Every `count`-th cell in the order of their ids.

        So the shards share all cells, each has as many as any other or one less, and which are whose depends
        neither on what is done already nor on the order of the methods.
        """
        own = set(sorted(cell.cell_id for cell in cells)[self.number - 1 :: self.count])
        return tuple(cell for cell in cells if cell.cell_id in own)


def parse_shard(text: str) -> Shard:
    """`3/8` → the third of eight."""
    if not re.fullmatch(r"\d{1,6}/\d{1,6}", text, re.ASCII):
        raise UserError(f"--shard {text}: write NUMBER/COUNT, such as 3/8 for the third of eight shards")
    number, count = map(int, text.split("/"))
    if not 1 <= number <= count:
        raise UserError(f"--shard {text}: shards are counted from 1 to COUNT, such as 1/8 to 8/8")
    return Shard(number, count)
