"""Rounds and bytes until a method reaches the final AVG of the reference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from bench.records.reader import CellRecord
from bench.records.schema import RoundRecord
from reports.numbers.history import bytes_sent, round_average
from reports.numbers.scores import RowScores


@dataclass(frozen=True)
class Effort:
    """Rounds and bytes until an evaluated round first reached the target."""

    round: int
    bytes: float | None
    """Sent up and down, including before the first round; None if a round does not record it."""


def efforts(row: RowScores, targets: Mapping[int, float]) -> dict[int, Effort | None]:
    """Seed → effort, for finished cells with a target; None if it is never reached.

    A seed whose history ends before the target is left out, because the effort is unknown.
    """
    found: dict[int, Effort | None] = {}
    for cell in row.cells:
        if cell.result is None or cell.seed not in targets:
            continue
        history = _unbroken(cell)
        effort = _effort(history, row.domains, targets[cell.seed])
        if effort or (history and history[-1].round == cell.result.rounds):
            found[cell.seed] = effort
    return found


def _unbroken(cell: CellRecord) -> list[RoundRecord]:
    """The rounds up to the first gap; round 0 is there only if something precedes the first round."""
    first = 0 if cell.rounds and cell.rounds[0].round == 0 else 1
    numbered = enumerate(cell.rounds, start=first)
    return [record for _, record in takewhile(lambda pair: pair[0] == pair[1].round, numbered)]


def _effort(history: Sequence[RoundRecord], domains: Sequence[str], target: float) -> Effort | None:
    sent: float | None = 0.0
    for record in history:
        more = bytes_sent(record)
        sent = None if sent is None or more is None else sent + more
        average = round_average(record, domains)
        # the last digits of a mean depend on the order of summation, and the reference must reach itself
        if average is not None and average >= target - 1e-9:
            return Effort(record.round, sent)
    return None
