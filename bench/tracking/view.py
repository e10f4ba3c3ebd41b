"""What MLflow shows of a cell, derived from its records alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bench.config.cell import CellConfig
from bench.records.cell_folder import CellFolder
from bench.records.schema import Oracle, PlannedRecord, Result, RoundRecord, row_name


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


def view_of(folder: CellFolder, config: CellConfig, planned: PlannedRecord, parent: str) -> CellView:
    """Parameters, metrics and tags of a cell that ended, well or not, as a child of the run `parent`."""
    result, rounds = folder.result(), folder.rounds()
    tags = {
        "cell": config.cell_id,
        "mlflow.parentRunId": parent,
        "suite": config.suite.name,
        "method": config.method.name,
        "label": planned.label,
        "variant": planned.variant,
        "seed": str(config.seed),
        "record": planned.directory,
    }
    if planned.swept is not None:
        tags["swept_row"] = planned.swept.row
    if result is not None:
        tags["commit"] = str(result.provenance.commit)
        finished = (
            datetime.fromisoformat(result.timing.finished).timestamp() if result.timing.finished else 0.0
        )
        ended, seconds = _milliseconds(finished), result.timing.wall_seconds or 0.0
    else:
        tags["error"] = folder.failure() or "unknown"
        ended, seconds = _milliseconds(folder.failed_at() or 0.0), sum(line.seconds for line in rounds)
    started = ended - _milliseconds(seconds)
    points = list(round_points(rounds, started))
    if result is not None:
        points += [Point(name, value, result.rounds, ended) for name, value in final_metrics(result)]
    return CellView(
        suite=config.suite.name,
        name=f"{row_name(planned.label, planned.variant)} s{config.seed}",
        status="FAILED" if result is None else "FINISHED",
        started=started,
        ended=ended,
        tags=tags,
        parameters=parameters_of({"label": planned.label, **config.as_record()}) | _swept(planned),
        points=points,
    )


def _swept(planned: PlannedRecord) -> dict[str, str]:
    """The swept keys as the user wrote them, so that MLflow can plot over them.

    They replace what the suite has: a swept `training.optimiser.lr` is that of the row.
    """
    values = planned.swept.values if planned.swept else {}
    return {allowed(key): as_parameter(value) for key, value in values.items()}


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
    return {allowed(name): value for name, value in parameters.items()}


def round_points(rounds: Sequence[RoundRecord], started: int) -> Iterator[Point]:
    """The history of a cell: accuracies where it was evaluated, bytes summed up so far, the method's own."""
    seconds, up, down = 0.0, 0, 0
    for line in rounds:
        seconds += line.seconds
        up += line.bytes_up
        down += line.bytes_down
        values: dict[str, Any] = {f"test_{domain}": value for domain, value in (line.test or {}).items()}
        values |= {"test_avg": line.average, "personal": line.personal, "validation": line.validation}
        values |= {"bytes_up": up, "bytes_down": down}
        values |= {f"test_loss_{domain}": value for domain, value in (line.test_loss or {}).items()}
        values |= {f"loss_terms.{name}": value for name, value in (line.loss_terms or {}).items()}
        values |= {f"metrics.{name}": value for name, value in line.metrics.items()}
        for name, value in _numbers(values).items():
            yield Point(name, value, line.round, started + _milliseconds(seconds))


def final_metrics(result: Result) -> Iterable[tuple[str, float]]:
    """The figures of the finished cell; those that were not measured are left out."""
    final, oracle, timing = result.final, result.oracle or Oracle(), result.timing
    values: dict[str, Any] = {f"final_test_{domain}": value for domain, value in (final.test or {}).items()}
    values |= {f"final_{name}": getattr(final, name) for name in ("avg", "std", "personal", "validation")}
    values |= {"last5_avg": result.last5_avg, "dropped": result.dropped}
    values |= {"selected_round": result.selected.round} if result.selected else {}
    values |= {f"oracle_{name}": getattr(oracle, name) for name in ("avg", "round")}
    values |= {name: getattr(timing, name) for name in ("wall_seconds", "cpu_seconds")}
    return _numbers(values).items()


def _flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, child in value.items():
            yield from _flatten(child, f"{prefix}.{name}" if prefix else name)
    else:
        yield prefix, as_parameter(value)


def as_parameter(value: Any) -> str:
    """A number as MLflow reads it back; any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def _numbers(values: dict[str, Any]) -> dict[str, float]:
    return {allowed(name): float(value) for name, value in values.items() if isinstance(value, int | float)}


def allowed(name: str) -> str:
    """MLflow takes letters, digits and a few signs in a name."""
    return re.sub(r"[^\w.\- ]", "_", name)


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
