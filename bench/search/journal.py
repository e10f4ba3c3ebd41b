"""The journal of a search, `trials.jsonl`: every suggestion, written before it starts, and how it ended.

A line in between says where ranges were made wider, for the trials that follow it.
A search has no other state: suggestions and early stops follow from the journal and the cells' records.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from bench.errors import UserError
from bench.records.checksums import CHECKSUM, is_broken, with_checksum
from bench.records.files import parse_json
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
    by_setting: Mapping[str, float] = field(default_factory=dict)
    """Setting → score, where there are several settings."""

    @property
    def kind_of_failure(self) -> str:
        return self.reason.partition(":")[0]


class Journal:
    """Append-only; a last line that a kill cut short is removed.

    Every line has a checksum, so that damage on the disk is noticed.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._trials: dict[int, Trial] = {}
        self._unwritten: list[dict[str, Any]] | None = None
        self.widened: dict[str, list[float]] = {}
        """Key → the range that it was given instead of the one it began with."""
        self.carried = 0
        """The number of trials before the last time that ranges were made wider."""
        if file.exists():
            text = file.read_bytes()
            whole = text[: text.rfind(b"\n") + 1]
            if whole != text:
                os.truncate(file, len(whole))
            for number, line in enumerate(whole.splitlines(), start=1):
                self._read(number, line)
        self.failed_before = frozenset(trial.number for trial in self.trials if trial.outcome == "failed")
        """Trials that failed in earlier commands; the cause may have been fixed since."""

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
        self,
        number: int,
        outcome: Outcome,
        validation: float | None,
        rounds: int,
        reason: str = "",
        by_setting: Mapping[str, float] | None = None,
    ) -> Trial:
        line: dict[str, Any] = {"trial": number, "outcome": outcome}
        line |= {"validation": validation, "rounds": rounds}
        line |= {"reason": reason} if reason else {}
        self._write(line | ({"by_setting": dict(by_setting)} if by_setting else {}))
        return self[number]

    def widen(self, ranges: Mapping[str, Sequence[float]]) -> None:
        """Write down that later trials are drawn from these ranges."""
        self._write({"widened": {key: list(ends) for key, ends in ranges.items()}})

    def _read(self, number: int, line: bytes) -> None:
        try:
            content = parse_json(line)
            if is_broken(content):
                raise ValueError("its content and its checksum differ")
            content.pop(CHECKSUM, None)
            self._take(content)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise UserError(
                f"{self._file} is damaged at line {number}; delete it and run the same command again: the "
                "search is rebuilt from its finished cells, which are kept"
            ) from error

    @contextmanager
    def in_one_write(self) -> Iterator[None]:
        """Collect the lines written inside and append them at once, since each write waits for the disk."""
        assert self._unwritten is None
        self._unwritten = []
        try:
            yield
        finally:
            lines, self._unwritten = self._unwritten, None
            self._append(lines)

    def _write(self, line: dict[str, Any]) -> None:
        if self._unwritten is None:
            self._append([line])
        else:
            self._unwritten.append(line)
        self._take(line)

    def _append(self, lines: Sequence[dict[str, Any]]) -> None:
        if not lines:
            return
        text = "".join(json.dumps(with_checksum(line), ensure_ascii=False) + "\n" for line in lines)
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            size = self._file.stat().st_size if self._file.exists() else 0
            try:
                with self._file.open("a", encoding="utf-8") as stream:
                    stream.write(text)
                    stream.flush()
                    os.fsync(stream.fileno())
            except OSError:
                os.truncate(self._file, size)  # so that the next line does not begin in the middle of one
                raise
        except OSError as error:
            raise UserError(
                f"cannot write {self._file}: {error.strerror}; make room there and run the same command "
                "again to resume"
            ) from error

    def _take(self, line: dict[str, Any]) -> None:
        if "widened" in line:
            self.widened |= {key: [low, high] for key, (low, high) in line["widened"].items()}
            self.carried = len(self._trials)
            return
        number = line["trial"]
        if "values" in line:
            self._trials[number] = Trial(number, line["values"])
        else:
            end = {key: value for key, value in line.items() if key != "trial"}
            self._trials[number] = replace(self._trials[number], **end)
