"""What it takes to be as accurate as the reference: rounds and bytes until its final AVG is reached."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from bench.records.reader import CellRecord, finite
from reports.numbers.scores import Entry, average_of


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
        if effort or (history and history[-1]["round"] == cell.result.get("rounds")):
            found[cell.seed] = effort
    return found


def _unbroken(cell: CellRecord) -> list[dict[str, Any]]:
    """The rounds up to the first gap; round 0 is there only if something precedes the first round."""
    first = 0 if cell.rounds and cell.rounds[0]["round"] == 0 else 1
    numbered = enumerate(cell.rounds, start=first)
    return [record for _, record in takewhile(lambda pair: pair[0] == pair[1]["round"], numbered)]


def _effort(history: Sequence[Mapping[str, Any]], domains: Sequence[str], target: float) -> Effort | None:
    sent: float | None = 0.0
    for record in history:
        up, down = finite(record.get("bytes_up")), finite(record.get("bytes_down"))
        sent = None if sent is None or up is None or down is None else sent + up + down
        average = average_of(record, domains)
        # the last digits of a mean depend on how it was summed up, and the reference has to reach itself
        if average is not None and average >= target - 1e-9:
            return Effort(record["round"], sent)
    return None
