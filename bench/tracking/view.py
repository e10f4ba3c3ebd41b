"""What MLflow shows of a cell, derived from its records alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any


@dataclass(frozen=True)
class Point:
    """A value of a metric at a round, at a time in milliseconds."""

    metric: str
    value: float
    step: int
    time: int

    @property
    def identity(self) -> tuple[str, int, str]:
        """What makes it the same point when logged again; as text, since NaN differs from itself."""
        return self.metric, self.step, repr(self.value)


@dataclass(frozen=True)
class CellView:
    """What MLflow shows of a cell, derived from its records alone."""

    suite: str
    name: str
    status: str
    started: int
    ended: int
    tags: dict[str, str]
    parameters: dict[str, str]
    points: list[Point]


def view_of(run_dir: Path, cell_dir: Path) -> CellView:
    """Parameters, metrics and tags of a cell that ended, well or not."""
    config = json.loads((cell_dir / "config.json").read_text())
    suite, method, seed = config["suite"]["name"], config["method"]["name"], config["seed"]
    tags = {
        "cell": config["cell"],
        "suite": suite,
        "method": method,
        "variant": config["variant"],
        "seed": str(seed),
        "record": cell_dir.relative_to(run_dir).as_posix(),
    }
    rounds = read_rounds(cell_dir / "rounds.jsonl")
    result_file = cell_dir / "result.json"
    if result_file.exists():
        result = json.loads(result_file.read_text())
        tags["commit"] = str(result["provenance"]["commit"])
        status = "FINISHED"
        ended = _milliseconds(datetime.fromisoformat(result["timing"]["finished"]).timestamp())
        seconds = result["timing"]["wall_seconds"]
    else:
        result = None
        error_file = cell_dir / "error.json"
        tags["error"] = json.loads(error_file.read_text())["error"]
        status = "FAILED"
        ended = _milliseconds(error_file.stat().st_mtime)
        seconds = sum(line.get("seconds", 0.0) for line in rounds)
    started = ended - _milliseconds(seconds)
    points = list(round_points(rounds, started))
    if result is not None:
        points += [Point(name, value, result["rounds"], ended) for name, value in final_metrics(result)]
    return CellView(suite, f"{method} s{seed}", status, started, ended, tags, parameters_of(config), points)


def parameters_of(config: dict[str, Any]) -> dict[str, str]:
    """The configuration as flat text: hyperparameters under their own names, the rest under dotted ones."""
    dotted = dict(_flatten(config))
    hyperparameters = "method.hyperparameters."
    parameters = {
        name: value
        for name, value in dotted.items()
        if name not in ("schema", "cell") and not name.startswith(hyperparameters)
    }
    for name, value in dotted.items():
        if name.startswith(hyperparameters):
            plain = name.removeprefix(hyperparameters)
            parameters[name if plain in parameters else plain] = value
    return {_allowed(name): value for name, value in parameters.items()}


def round_points(rounds: Sequence[dict[str, Any]], started: int) -> Iterator[Point]:
    """The history of a cell: accuracies where it was evaluated, bytes summed up so far, the method's own."""
    seconds, up, down = 0.0, 0, 0
    for line in rounds:
        seconds += line.get("seconds", 0.0)
        up += line["bytes_up"]
        down += line["bytes_down"]
        test = line.get("test") or {}
        values = {f"test_{domain}": accuracy for domain, accuracy in test.items()}
        if test:
            values["test_avg"] = fmean(test.values())
        values |= {name: line.get(name) for name in ("personal", "validation")}
        values |= {"bytes_up": up, "bytes_down": down}
        values |= {f"metrics.{name}": value for name, value in line.get("metrics", {}).items()}
        for name, value in _numbers(values).items():
            yield Point(name, value, line["round"], started + _milliseconds(seconds))


def final_metrics(result: dict[str, Any]) -> Iterable[tuple[str, float]]:
    """The figures of the finished cell; those that were not measured are left out."""
    final, oracle, timing = result["final"], result.get("oracle") or {}, result["timing"]
    values = {f"final_test_{domain}": accuracy for domain, accuracy in (final.get("test") or {}).items()}
    values |= {f"final_{name}": final.get(name) for name in ("avg", "std", "personal", "validation")}
    values |= {"last5_avg": result.get("last5_avg"), "dropped": result.get("dropped")}
    values |= {f"oracle_{name}": oracle.get(name) for name in ("avg", "round")}
    values |= {name: timing.get(name) for name in ("wall_seconds", "cpu_seconds")}
    return _numbers(values).items()


def read_rounds(path: Path) -> list[dict[str, Any]]:
    """The rounds in order; a line cut short by a kill is left out."""
    rounds: dict[int, dict[str, Any]] = {}
    for text in path.read_text().splitlines() if path.exists() else ():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        rounds[line["round"]] = line
    return [rounds[number] for number in sorted(rounds)]


def _flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, child in value.items():
            yield from _flatten(child, f"{prefix}.{name}" if prefix else name)
    else:
        yield prefix, value if isinstance(value, str) else json.dumps(value)


def _numbers(values: dict[str, Any]) -> dict[str, float]:
    return {_allowed(name): float(value) for name, value in values.items() if isinstance(value, int | float)}


def _allowed(name: str) -> str:
    """MLflow takes letters, digits and a few signs in a name."""
    return re.sub(r"[^\w.\- ]", "_", name)


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
