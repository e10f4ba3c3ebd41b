"""What it takes to be as accurate as the reference: rounds and bytes until its final AVG is reached."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from bench.records.reader import CellRecord
from bench.records.schema import RoundRecord
from reports.numbers.history import bytes_sent, round_average
from reports.numbers.scores import Entry


@dataclass(frozen=True)
class Effort:
    """Until the target was first reached at an evaluated round."""

    round: int
    bytes: float | None
    """Sent up and down, what precedes the first round included; None if a round before has no number."""


def efforts(entry: Entry, targets: Mapping[int, float]) -> dict[int, Effort | None]:
    """By seed, of the finished cells that have a target; None where it is never reached.

    A seed whose history breaks off before the target is left out: nobody knows when it was reached.
    """
    found: dict[int, Effort | None] = {}
    for cell in entry.cells:
        if cell.result is None or cell.seed not in targets:
            continue
        history = _unbroken(cell)
        effort = _effort(history, entry.domains, targets[cell.seed])
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
        # the last digits of a mean depend on how it was summed up, and the reference has to reach itself
        if average is not None and average >= target - 1e-9:
            return Effort(record.round, sent)
    return None
