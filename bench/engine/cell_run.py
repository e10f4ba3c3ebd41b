"""One cell on disk and in motion: start or resume it, advance it round by round, write its result.

config.json     what it is
rounds.jsonl    a line a round
projection.npz  test samples around the anchors of their classes, of a method with anchors at seed 0
checkpoint/     where it stands, until it is done
result.json     written last: its presence means done
error.json      why it failed, until it succeeds
"""

from __future__ import annotations

import json
import shutil
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from bench.engine.assembly import assemble
from bench.engine.checkpoints import latest_checkpoint, write_checkpoint
from bench.engine.executors import make_hosts
from bench.engine.federation import Federation
from bench.engine.hosts.base import is_finite
from bench.engine.projection import PROJECTION, write_projection
from bench.errors import UserError
from bench.records.files import read_json, write_json
from bench.records.provenance import hardware, versions
from bench.suite.methods import code_digest
from bench.suite.planning import SCHEMA

SCRATCH = ".tune-"
"""How the folders begin in which Ray Tune keeps its own notes while cells run."""


LAST = 5
"""Rounds at the end whose mean a table shows beside the final one."""


@dataclass(frozen=True)
class Conditions:
    """How a cell is computed; none of it changes the result."""

    executor: str = "auto"
    hosts: int = 2
    cpus: float = 1.0
    gpus: float = 0.0
    """What a trial, or each of its hosts, may use."""
    data_root: Path | None = None
    checkpoint_seconds: float = 15.0
    commit: str = ""

    @property
    def threads(self) -> int:
        return max(1, int(self.cpus))


class CellRun:
    """A cell between two rounds. Opening it again goes on from its last checkpoint."""

    def __init__(self, directory: Path, config: Mapping[str, Any], conditions: Conditions) -> None:
        self.directory = directory
        self._config = config
        self._conditions = conditions
        self._rounds: int = config["training"]["rounds"]
        directory.mkdir(parents=True, exist_ok=True)
        if not (directory / "config.json").exists():
            write_json(directory / "config.json", config)
        assembled = assemble(config, conditions.data_root, gpus=conditions.gpus)
        self._fingerprints = assembled.fingerprints
        self._method_code = code_digest(config["method"]["name"])  # now, as its file may change meanwhile
        self._hosts = make_hosts(assembled.problem, config, conditions)
        self._federation = Federation(
            assembled.problem, self._hosts.hosts, config["training"]["participation"]
        )
        self._device = assembled.problem.task.device
        self._lines: list[dict[str, Any]] = []
        self._resume()
        self._saved_at = time.monotonic()
        self._cpu_started = time.process_time()

    @property
    def done(self) -> bool:
        return is_done(self.directory)

    @property
    def rounds_done(self) -> int:
        return self._federation.rounds

    @property
    def last_average(self) -> float | None:
        """The newest test average there is, for showing how things go."""
        return next((fmean(line["test"].values()) for line in reversed(self._lines) if "test" in line), None)

    @property
    def validations(self) -> dict[int, float]:
        """Round → accuracy on the held-out samples, where it was measured."""
        return validations_of(self._lines)

    def divergence(self) -> str | None:
        """Why nothing can come of this cell any more, if so."""
        last = self._lines[-1] if self._lines else {"clients": 0, "dropped": 0}
        if 0 < last["clients"] == last["dropped"]:
            return f"every client's reply of round {last['round']} was NaN or infinite"
        if not is_finite(self._federation.server):
            return f"the server's state was NaN or infinite after round {last['round']}"
        return None

    def advance(self) -> None:
        """One more round: compute, measure if due, record, save if due, and finish after the last."""
        started = time.perf_counter()
        if self._federation.rounds == 0 and self._federation.has_prelude:
            self._append(self._federation.prelude(), started)
            started = time.perf_counter()
        record = self._federation.advance()
        last = record["round"] == self._rounds
        if self._is_measured(record["round"]):
            record = _with_scores(record, self._federation.evaluate(self._config["evaluation"]["personal"]))
        self._append(record, started)
        if last:
            self._finish()
        elif time.monotonic() - self._saved_at >= self._conditions.checkpoint_seconds:
            write_checkpoint(self._checkpoints, record["round"], self._federation.save)
            self._saved_at = time.monotonic()

    def _is_measured(self, number: int) -> bool:
        """Now and then, and in all of the rounds that a table takes a mean of; a search looks less often."""
        evaluation = self._config["evaluation"]
        in_mean = number > self._rounds - LAST and evaluation.get("test", True)
        return in_mean or number == self._rounds or number % evaluation["every"] == 0

    def close(self) -> None:
        self._hosts.close()

    @property
    def _checkpoints(self) -> Path:
        return self.directory / "checkpoint"

    @property
    def _records(self) -> Path:
        return self.directory / "rounds.jsonl"

    def _resume(self) -> None:
        """Take up the last checkpoint and forget the rounds recorded after it: they come again, the same."""
        saved = latest_checkpoint(self._checkpoints)
        if saved is not None:
            number, folder = saved
            self._federation.load(folder, number)
            self._lines = [line for line in _whole_lines(self._records) if line["round"] <= number]
        draft = self._records.with_suffix(".draft")
        draft.write_text("".join(map(_json_line, self._lines)), encoding="utf-8")
        draft.replace(self._records)

    def _append(self, record: dict[str, Any], started: float) -> None:
        record["seconds"] = round(time.perf_counter() - started, 3)
        self._lines.append(record)
        with self._records.open("a", encoding="utf-8") as stream:
            stream.write(_json_line(record))

    def _finish(self) -> None:
        if self._config["seed"] == 0:  # one picture a row is enough
            write_projection(self.directory / PROJECTION, self._federation.problem, self._federation.server)
        write_json(self.directory / "result.json", self._result())
        (self.directory / "error.json").unlink(missing_ok=True)
        shutil.rmtree(self._checkpoints, ignore_errors=True)

    def _result(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "cell": self._config["cell"],
            "rounds": self._rounds,
            **_accuracies(self._lines),
            "bytes_up": sum(line["bytes_up"] for line in self._lines),
            "bytes_down": sum(line["bytes_down"] for line in self._lines),
            "dropped": sum(line["dropped"] for line in self._lines),
            "provenance": {
                "commit": self._conditions.commit,
                "versions": versions(),
                "hardware": hardware(str(self._device), self._conditions.threads),
                "executor": self._hosts.name,
                "method_code": self._method_code,
                **asdict(self._fingerprints),
            },
            "timing": {
                "wall_seconds": round(sum(line["seconds"] for line in self._lines), 3),
                "cpu_seconds": round(time.process_time() - self._cpu_started, 3),
                "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            },
        }


def _accuracies(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The scores of a result; validation alone where the test sets were left alone."""
    last = lines[-1]
    if "test" not in last:
        return {"final": {"validation": last["validation"]}}
    averages = {line["round"]: fmean(line["test"].values()) for line in lines if "test" in line}
    best = max(averages, key=lambda number: averages[number])
    return {
        "final": {
            "test": last["test"],
            "avg": averages[last["round"]],
            "std": pstdev(last["test"].values()),
            "personal": last.get("personal"),
            "validation": last.get("validation"),
        },
        "last5_avg": fmean(list(averages.values())[-LAST:]),
        "oracle": {"round": best, "avg": averages[best]},
    }


def recorded_validations(directory: Path) -> dict[int, float]:
    """The same of a cell on disk, running or not."""
    return validations_of(_whole_lines(directory / "rounds.jsonl"))


def whole_rounds(directory: Path) -> int:
    """How many rounds the records of a cell hold."""
    return max((line["round"] for line in _whole_lines(directory / "rounds.jsonl")), default=0)


def validations_of(lines: Sequence[Mapping[str, Any]]) -> dict[int, float]:
    return {line["round"]: line["validation"] for line in lines if "validation" in line}


def is_done(directory: Path) -> bool:
    return (directory / "result.json").exists()


def code_of(directory: Path) -> str | None:
    """The digest of the code that a finished cell's method had; None where there is none to be read."""
    try:
        return read_json(directory / "result.json")["provenance"]["method_code"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def record_failure(directory: Path, error: BaseException) -> None:
    """Leave the reason beside what the cell has done so far."""
    summary = " ".join(f"{type(error).__name__}: {error}{_place(error)}".split())
    trace = "".join(traceback.format_exception(error))
    directory.mkdir(parents=True, exist_ok=True)
    write_json(directory / "error.json", {"error": summary, "traceback": trace})


def _place(error: BaseException) -> str:
    """Where in the project's or the user's own code it happened; nothing if that is no help."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename]
    if isinstance(error, UserError) or not own:
        return ""
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})"


def failure_of(directory: Path) -> str | None:
    file = directory / "error.json"
    return read_json(file)["error"] if file.exists() else None


def _with_scores(record: dict[str, Any], scores: dict[str, Any]) -> dict[str, Any]:
    metrics = {**scores.pop("metrics", {}), **record.pop("metrics", {})}
    together = {"round": record.pop("round"), **scores, **record}
    return together | ({"metrics": metrics} if metrics else {})


def _json_line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"


def _whole_lines(file: Path) -> list[dict[str, Any]]:
    """The records of a file whose last line may have been cut off by a kill."""
    if not file.exists():
        return []
    return [
        json.loads(line) for line in file.read_text(encoding="utf-8").splitlines(True) if line.endswith("\n")
    ]
