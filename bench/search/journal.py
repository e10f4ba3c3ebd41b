"""The memory of a search: what was suggested, written before it starts, and what became of it.

Nothing else is kept: suggestions and early stops follow from these lines and the cells' own records.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from bench.search.space import Values

Outcome = Literal["finished", "stopped", "failed"]


@dataclass(frozen=True)
class Trial:
    number: int
    values: Values
    """What differs from the suite's own configuration; nothing for trial 0."""
    outcome: Outcome | None = None
    """None while it is open."""
    validation: float | None = None
    """The mean over its cells at the last round they were measured."""
    rounds: int = 0
    """Done in all of its cells together."""
    reason: str = ""
    """Why it failed."""

    @property
    def kind_of_failure(self) -> str:
        return self.reason.partition(":")[0]


class Journal:
    """Append-only; a line that a kill cut short is as if it had never been."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._trials: dict[int, Trial] = {}
        if file.exists():
            text = file.read_bytes()
            whole = text[: text.rfind(b"\n") + 1]
            if whole != text:
                os.truncate(file, len(whole))
            for line in whole.splitlines():
                self._take(json.loads(line))
        self.failed_before = frozenset(trial.number for trial in self.trials if trial.outcome == "failed")
        """What earlier commands have seen to fail; the cause may have been mended since."""

    @property
    def trials(self) -> Sequence[Trial]:
        return [self._trials[number] for number in sorted(self._trials)]

    @property
    def open(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.outcome is None]

    def __getitem__(self, number: int) -> Trial:
        return self._trials[number]

    def suggested(self, number: int, values: Values) -> Trial:
        self._write({"trial": number, "values": values})
        return self[number]

    def ended(
        self, number: int, outcome: Outcome, validation: float | None, rounds: int, reason: str = ""
    ) -> Trial:
        line = {"trial": number, "outcome": outcome, "validation": validation, "rounds": rounds}
        self._write(line | ({"reason": reason} if reason else {}))
        return self[number]

    def _write(self, line: dict[str, Any]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        self._take(line)

    def _take(self, line: dict[str, Any]) -> None:
        number = line["trial"]
        if "values" in line:
            self._trials[number] = Trial(number, line["values"])
        else:
            end = {key: value for key, value in line.items() if key != "trial"}
            self._trials[number] = replace(self._trials[number], **end)
