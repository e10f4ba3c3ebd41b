"""Reads a run directory into frozen records; tables and figures are functions of nothing else."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.errors import UserError

SCHEMA = 1
CONFIG_SECTIONS = ("suite", "dataset", "training", "method")
"""What reports read of a configuration."""


@dataclass(frozen=True)
class Suite:
    """The suite that a run belongs to."""

    name: str
    version: int
    title: str


@dataclass(frozen=True)
class CellRecord:
    """One planned cell and whatever it has left on disk so far."""

    cell: str
    method: str
    label: str
    variant: str
    seed: int
    config: Mapping[str, Any] | None
    rounds: list[dict[str, Any]]
    result: Mapping[str, Any] | None
    error: str | None
    tuning: Mapping[str, Any] | None = None
    """How the hyperparameters of its run were found; None if they were not searched for."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What was changed of the suite for its run: dotted key → value."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What the result says about code, data and machine; empty without a result."""
        return (self.result or {}).get("provenance") or {}

    @property
    def chosen(self) -> Mapping[str, Any]:
        """What the run's record of tuning says about the cell's method; empty if it was not tuned."""
        methods = (self.tuning or {}).get("methods")
        entry = methods.get(self.method) if isinstance(methods, Mapping) else None
        return entry if isinstance(entry, Mapping) else {}

    @property
    def dropped(self) -> int:
        """How many of the clients' replies held NaN or infinity and were left out."""
        return int((self.result or {}).get("dropped") or 0)

    @property
    def replies(self) -> int:
        return sum(int(line.get("clients") or 0) for line in self.rounds)

    @property
    def as_published(self) -> bool:
        """Whether the cell follows a paper's code to the letter, best round on test included."""
        return bool(self.config and self.config["method"]["hyperparameters"].get("as_published"))

    def accuracy(self, domain: str) -> float | None:
        """Test accuracy on a domain as a fraction, of the final round; None if there is no finite value.

        Of the best round on test where the cell follows a paper's code that selects it.
        """
        return finite(self._selected.get(domain)) if self.result else None

    @cached_property
    def _selected(self) -> Mapping[str, Any]:
        """The test accuracies of the round that counts."""
        assert self.result is not None
        final: Mapping[str, Any] = self.result["final"]["test"]
        if not self.as_published:
            return final
        best = (self.result.get("oracle") or {}).get("round")
        if best is None:  # the final round would pass for the best one
            return {}
        return next((line["test"] for line in self.rounds if line["round"] == best and "test" in line), final)

    @property
    def personal(self) -> float | None:
        """Final mean over clients of own-test accuracy as a fraction; None if there is no finite value."""
        return finite(self.result["final"].get("personal")) if self.result else None


@dataclass(frozen=True)
class Run:
    """A plan and its cells, in the plan's order."""

    source: str
    """Where it was read."""
    suite: Suite
    layout: Mapping[str, Any]
    """The plan's table section: the kind of table and its settings."""
    domains: tuple[str, ...]
    cells: tuple[CellRecord, ...]

    @property
    def kind(self) -> str:
        """The kind of table that the plan asks for."""
        return str(self.layout["kind"])

    @property
    def settings(self) -> Mapping[str, Any]:
        """What was changed of the suite, as the first cell has it."""
        return self.cells[0].settings

    @property
    def variants(self) -> tuple[str, ...]:
        """The settings of the suite that the plan holds, in order; a lone one may have the name ""."""
        return tuple(dict.fromkeys(cell.variant for cell in self.cells))


def finite(value: object) -> float | None:
    """The value as a float, or None if it is absent, NaN or infinite."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def load_run(path: Path) -> Run:
    """Read the plan of a run directory and the records of every planned cell."""
    plan_file = path / "plan.json"
    if not plan_file.is_file():
        raise UserError(
            f"No plan.json in {path}: give the directory of a run, or make one with `bench run --suite NAME`."
        )
    plan = _read_json(plan_file)
    _check_schema(plan, plan_file)
    try:
        suite = plan["suite"]
        run = Run(
            source=str(path),
            suite=Suite(suite["name"], suite["version"], suite.get("title", "")),
            layout={"kind": plan["table"]["kind"], **plan["table"]},
            domains=tuple(plan["domains"]),
            cells=tuple(_load_cell(path, plan, entry) for entry in plan["cells"]),
        )
    except (KeyError, TypeError, AttributeError) as problem:
        raise UserError(
            f"{plan_file} is incomplete ({problem!r}): run the suite again to write it anew."
        ) from problem
    if not run.cells:
        raise UserError(f"{plan_file} plans no cells: run the suite with at least one method and one seed.")
    _check_planned_once(run, plan_file)
    return run


def _load_cell(run_directory: Path, plan: Mapping[str, Any], entry: Mapping[str, Any]) -> CellRecord:
    directory = run_directory / entry["dir"]
    result = _read_record(directory / "result.json", entry["cell"])
    final = result.get("final") if result else None
    if result and not (isinstance(final, dict) and isinstance(final.get("test"), dict)):
        raise UserError(f"{directory / 'result.json'} has no final.test: delete it and run the suite again.")
    return CellRecord(
        cell=entry["cell"],
        method=entry["method"],
        label=entry["label"],
        variant=entry["variant"],
        seed=entry["seed"],
        config=_read_config(directory / "config.json", entry["cell"]),
        rounds=_read_rounds(directory / "rounds.jsonl"),
        result=result,
        error=None if result else _read_error(directory / "error.json"),
        tuning=plan.get("tuning"),
        settings=plan.get("set") or {},
    )


def _read_config(file: Path, cell: str) -> dict[str, Any] | None:
    config = _read_record(file, cell)
    if config is None:
        return None
    lost = [section for section in CONFIG_SECTIONS if not isinstance(config.get(section), dict)]
    if not lost and not isinstance(config["method"].get("hyperparameters"), dict):
        lost = ["method.hyperparameters"]
    if lost:
        raise UserError(f"{file} has no {', '.join(lost)}: delete its directory and run the suite again.")
    return config


def _read_record(file: Path, cell: str) -> dict[str, Any] | None:
    if not file.is_file():
        return None
    record = _read_json(file)
    _check_schema(record, file)
    if record.get("cell") != cell:
        raise UserError(
            f"{file} belongs to cell {record.get('cell')}, but the plan expects {cell}: "
            "delete its directory and run the suite again."
        )
    return record


def _read_rounds(file: Path) -> list[dict[str, Any]]:
    """The rounds in order. A round done again after a restart counts once, as last written."""
    if not file.is_file():
        return []
    lines = file.read_bytes().splitlines()
    rounds: dict[int, dict[str, Any]] = {}
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            rounds[record["round"]] = record
        except (ValueError, KeyError, TypeError) as problem:
            if number == len(lines):  # a killed process can leave half a line at the end
                break
            raise UserError(
                f"{file} is damaged at line {number}: delete its directory and run the suite again."
            ) from problem
    return [rounds[number] for number in sorted(rounds)]


def _read_error(file: Path) -> str | None:
    if not file.is_file():
        return None
    text = str(_read_json(file).get("error") or "no message")
    first_line = (text.strip().splitlines() or ["no message"])[0]
    return "".join(character for character in first_line if character.isprintable())


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_bytes())
    except ValueError as problem:
        raise UserError(
            f"{file} is not valid JSON ({problem}): delete it and run the suite again."
        ) from problem
    if not isinstance(content, dict):
        raise UserError(f"{file} does not hold a JSON object: delete it and run the suite again.")
    return content


def _check_schema(record: Mapping[str, Any], file: Path) -> None:
    if record.get("schema") != SCHEMA:
        raise UserError(
            f"{file} has schema {record.get('schema')}, but this version reads schema {SCHEMA}: "
            "use the version of the harness that wrote it, or run the suite again into another directory."
        )


def _check_planned_once(run: Run, plan_file: Path) -> None:
    counts = Counter((cell.method, cell.label, cell.variant, cell.seed) for cell in run.cells)
    for (_, label, variant, seed), count in counts.items():
        if count > 1:
            raise UserError(
                f"{plan_file} plans {' '.join(filter(None, (label, variant)))} seed {seed} {count} times: "
                "run the suite again to write it anew."
            )
