"""The folder of one cell: the only code that reads and writes the files in it.

config.json     what the cell is
rounds.jsonl    one line per round
projection.npz  test samples around the anchors of their classes, for a method with anchors at seed 0
predictions.npz what the final model predicts for every test sample (see `predictions.py`)
model/          the last state of server and clients, where a run was asked to keep it
checkpoint/     where the cell stands, until it is done
result.json     written last: its presence means done
error.json      why it failed, until it succeeds
debug/          the arguments of the client's work that failed, with the executor `debug`
"""

from __future__ import annotations

import json
import os
import shutil
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from bench.config.cell import SCHEMA, CellConfig
from bench.config.names import LONGEST
from bench.errors import UserError
from bench.records.checksums import CHECKSUM, digest_of, is_broken, with_checksum
from bench.records.files import (
    as_json,
    inside,
    parse_json,
    read_json,
    replacing,
    whole_lines,
    write_atomically,
    write_json,
)
from bench.records.schema import Failure, Result, RoundRecord, validations

R = TypeVar("R", bound=BaseModel)

FILES: Final = "files"
"""The key of a result that has the digests of the cell's other files."""
TAIL = 65_536
"""Bytes at the end of a record of rounds that show how far a cell is."""


@dataclass(frozen=True)
class CellFolder:
    path: Path

    @property
    def is_done(self) -> bool:
        return self._result.exists()

    @property
    def projection(self) -> Path:
        return self.path / "projection.npz"

    @property
    def predictions(self) -> Path:
        return self.path / "predictions.npz"

    @property
    def model(self) -> Path:
        return self.path / "model"

    @property
    def failed_arguments(self) -> Path:
        return self.path / "debug" / "failed_arguments.pt"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoint"

    @property
    def rounds_file(self) -> Path:
        return self.path / "rounds.jsonl"

    @property
    def end_file(self) -> Path | None:
        """The file that says how the cell ended, if it did."""
        return next((file for file in (self._result, self._error) if file.exists()), None)

    def config(self) -> CellConfig | None:
        """None before the cell is first opened."""
        self._check_unchanged(self._config)
        return self._read(self._config, CellConfig)

    def result(self) -> Result | None:
        """None until the cell is done."""
        return self._read(self._result, Result)

    def failure(self) -> str | None:
        """Why the cell failed, in one line; None if it did not."""
        if not self._error.is_file():
            return None
        try:
            return Failure.model_validate(read_json(self._error)).summary
        except ValidationError:
            return "the file that says why, error.json, is damaged"

    def failed_at(self) -> float | None:
        """When the failure was recorded, in seconds since 1970."""
        return self._error.stat().st_mtime if self._error.is_file() else None

    def rounds(self) -> list[RoundRecord]:
        """The rounds in order; one that was computed again after a restart counts once, as last written.

        A line that a kill cut short is left out; damage anywhere else is a UserError with its place.
        """
        self._check_unchanged(self.rounds_file)
        lines = whole_lines(self.rounds_file)
        found: dict[int, RoundRecord] = {}
        for number, line in enumerate(lines, start=1):
            try:
                record = RoundRecord.model_validate(parse_json(line))
            except ValueError as error:
                if number == len(lines):
                    break
                raise UserError(f"{self.rounds_file} is damaged at line {number}; {self._remedy}") from error
            found[record.round] = record
        return [found[number] for number in sorted(found)]

    def recorded(self) -> bytes:
        """The record of the rounds as it stands in its file."""
        return self.rounds_file.read_bytes() if self.rounds_file.is_file() else b""

    def latest(self) -> list[RoundRecord]:
        """The last recorded rounds, as many as are quick to read; for looking on while a cell runs."""
        if not self.rounds_file.is_file():
            return []
        with self.rounds_file.open("rb") as stream:
            start = max(0, stream.seek(0, os.SEEK_END) - TAIL)
            stream.seek(start)
            lines = stream.read().split(b"\n")[1 if start else 0 : -1]
        found = []
        for line in lines:
            with suppress(ValueError):  # another process may be writing it
                found.append(RoundRecord.model_validate(parse_json(line)))
        return found

    def validations(self) -> dict[int, float]:
        """Round → accuracy on the held-out samples, whether the cell is running or not."""
        return validations(self.rounds())

    def rounds_done(self) -> int:
        """The last round that is recorded; 0 before the first."""
        return max((line.round for line in self.rounds()), default=0)

    def method_code(self) -> str | None:
        """The digest of the method's code that a finished cell was computed with; None if unknown."""
        try:
            result = self.result()
        except UserError:
            return None
        return result.provenance.method_code if result else None

    def open(self, config: CellConfig) -> None:
        """Make the folder and say what the cell is."""
        inside(self.path.parent, self.path.name).mkdir(parents=True, exist_ok=True)
        content = as_json(config.as_record())
        if not self._config.exists() or self._config.read_bytes() != content:  # it was damaged
            write_atomically(self._config, content)

    def keep_recorded(self, rounds: bytes) -> None:
        """Replace the record of the rounds by a part of it."""
        with replacing(self.rounds_file) as draft:
            draft.write_bytes(rounds)

    def keep_rounds(self, rounds: Sequence[RoundRecord]) -> None:
        """Replace the recorded rounds by these."""
        with replacing(self.rounds_file) as draft:
            draft.write_text("".join(map(_line, rounds)), encoding="utf-8")

    def append(self, record: RoundRecord) -> None:
        with self.rounds_file.open("a", encoding="utf-8") as stream:
            stream.write(_line(record))

    def finish(self, result: Result) -> None:
        """Mark the cell as done, and remove what only an unfinished cell needs."""
        files = {file.name: digest_of(file.read_bytes()) for file in (self._config, self.rounds_file)}
        write_json(
            self._result, with_checksum({**result.model_dump(mode="json", by_alias=True), FILES: files})
        )
        self.forget_failure()
        self.remove_checkpoints()

    def fail(self, error: BaseException) -> None:
        """Leave the reason beside what the cell has done so far."""
        notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
        summary = " ".join(f"{type(error).__name__}: {error}{_place(error)}{notes}".split())
        trace = "".join(traceback.format_exception(error))
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self._error, Failure(error=summary, traceback=trace).model_dump())

    def forget_failure(self) -> None:
        self._error.unlink(missing_ok=True)
        shutil.rmtree(self.failed_arguments.parent, ignore_errors=True)

    def remove_checkpoints(self) -> None:
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    @property
    def _config(self) -> Path:
        return self.path / "config.json"

    @property
    def _result(self) -> Path:
        return self.path / "result.json"

    @property
    def _error(self) -> Path:
        return self.path / "error.json"

    def _read(self, file: Path, kind: type[R]) -> R | None:
        if not file.is_file():
            return None
        return as_record(kind, read_json(file), file, self._remedy)

    @property
    def _remedy(self) -> str:
        return f"delete the folder {self.path} and run the suite again"

    def _check_unchanged(self, file: Path) -> None:
        """A UserError if the cell is done, and this file of it is no longer what it was then."""
        if not (self._result.is_file() and file.is_file()):
            return
        files = read_json(self._result).get(FILES)
        if isinstance(files, dict) and files.get(file.name, "") not in ("", digest_of(file.read_bytes())):
            raise UserError(f"{file} is damaged (it has changed since the cell was done); {self._remedy}")


def as_record(kind: type[R], content: dict[str, Any], file: Path, remedy: str) -> R:
    """The content of a file as a typed record; a UserError names the file, the key and the remedy."""
    if content.get("schema") != SCHEMA:
        raise UserError(
            f"{file} has schema {content.get('schema')}, but this version reads schema {SCHEMA}; use the "
            "version of the harness that wrote it, or run the suite again into another folder"
        )
    if is_broken(content):
        raise UserError(f"{file} is damaged (its content and its checksum differ); {remedy}")
    try:
        return kind.model_validate(
            {key: value for key, value in content.items() if key not in (CHECKSUM, FILES)}
        )
    except ValidationError as error:
        raise UserError(f"{file} is damaged ({first_problem(error)}); {remedy}") from error


def first_problem(error: ValueError) -> str:
    """What is wrong with a record, and at which key."""
    if not isinstance(error, ValidationError):
        return str(error)
    problem = error.errors()[0]
    place = ".".join(str(part)[:LONGEST] for part in problem["loc"])
    return f"{place}: {problem['msg'].removeprefix('Value error, ')}"


def _line(record: RoundRecord) -> str:
    return json.dumps(record.model_dump(exclude_none=True), ensure_ascii=False) + "\n"


def _place(error: BaseException) -> str:
    """Where in the project's or the user's own code it happened; nothing if that is no help."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename]
    if isinstance(error, UserError) or not own:
        return ""
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})"
