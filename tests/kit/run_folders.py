"""Writes run directories for the tests of reports/, in the format of the records, and a golden one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.records.schema import DEFAULT_ROW

LABELS = {
    "local": "Local",
    "central": "Central",
    "fedavg": "FedAvg",
    "fedprox": "FedProx",
    "fedproto": "FedProto",
    "fedlsa": "FedLSA",
}
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CHECKSUM = "fedcba9876543210" * 4
TRAINING = {
    "epochs": 1,
    "batch_size": 16,
    "participation": 1.0,
    "optimiser": {"name": "sgd", "lr": 0.1, "momentum": 0.0, "weight_decay": 0.0},
}


@dataclass
class Planned:
    """A cell of the plan; without `test` it leaves no result, with `error` it has failed."""

    method: str
    seed: int
    test: Sequence[float] | None = None
    label: str = ""
    variant: str = ""
    personal: float | None = None
    error: str | None = None
    rounds: int = 20
    curve: Mapping[int, Sequence[float]] = field(default_factory=dict)
    history: Sequence[Mapping[str, Any]] = ()
    """Lines of rounds.jsonl as they are, in place of a curve."""
    dataset: str = "digits_mini"
    partition: dict[str, Any] = field(default_factory=lambda: {"name": "by_domain"})
    training: dict[str, Any] = field(default_factory=dict)
    partition_hash: str = "83e8afa1efaf271b"
    last5: float | None = None
    oracle: float | None = None
    dropped: int = 0
    commit: str | None = COMMIT
    checksum: str = CHECKSUM
    validation: float = 0.0
    hyperparameters: dict[str, Any] = field(default_factory=dict)
    method_version: int = 1
    encoder: dict[str, Any] | None = None
    attackers: dict[str, Any] | None = None
    contract: str | None = None
    swept: dict[str, Any] | None = None
    """The place of the cell in a sweep: row, setting, values and defaults."""

    @property
    def cell(self) -> str:
        variant = "".join(character for character in self.variant if character.isalnum())
        return f"{self.method}-{self.label or '-'}-{variant}-{self.seed}"

    @property
    def dir(self) -> str:
        return f"cells/{self.cell}".replace(" ", "_")


def write_run(
    path: Path,
    cells: Sequence[Planned],
    domains: Sequence[str] = ("mnist", "fonts"),
    suite: str = "quickstart",
    kind: str = "domains",
    version: int = 1,
    **plan: Any,
) -> Path:
    """Write plan and records; returns the run directory."""
    path.mkdir(parents=True, exist_ok=True)
    _dump(
        path / "plan.json",
        {
            "schema": 1,
            "suite": {"name": suite, "version": version, "title": "Digits, two domains"},
            "table": {"kind": kind},
            "domains": list(domains),
            "cells": [
                {
                    "cell": cell.cell,
                    "dir": cell.dir,
                    "method": cell.method,
                    "label": cell.label or LABELS.get(cell.method, cell.method),
                    "variant": cell.variant,
                    "seed": cell.seed,
                    **({"tuned": False} if cell.label.endswith(DEFAULT_ROW) else {}),
                    **({"swept": cell.swept} if cell.swept else {}),
                }
                for cell in cells
            ],
            **plan,
        },
    )
    for cell in cells:
        if cell.test is not None or cell.error is not None or cell.curve or cell.history:
            _write_cell(path / cell.dir, cell, domains, suite)
    return path


def history(curve: Mapping[int, Sequence[float]], rounds: int, sent: int = 1000) -> list[dict[str, Any]]:
    """A line for each round, with accuracies where the curve has them; `sent` bytes each way a round."""
    lines = []
    for number in range(1, rounds + 1):
        test = {"test": dict(zip(("mnist", "fonts"), curve[number], strict=True))} if number in curve else {}
        lines.append({"round": number, **test, "bytes_up": sent, "bytes_down": sent, "seconds": 0.5})
    return lines


def golden_run(path: Path) -> Path:
    """Records with all that a report has to cope with: gaps, failures, NaN, a line cut off."""
    cells = []
    levels = {"local": 0.50, "fedavg": 0.68, "fedprox": 0.685, "fedlsa": 0.74, "central": 0.90}
    for offset, (method, level) in enumerate(levels.items()):
        for seed in range(3):
            wobble = 0.004 * ((7 * seed + 5 * offset) % 6)
            final = (level + 0.013 * seed + wobble, 0.6 * level - 0.008 * seed + wobble / 2)
            half = tuple(0.8 * value for value in final)
            cells.append(
                Planned(
                    method,
                    seed,
                    final,
                    rounds=10,
                    history=history({5: half, 10: final}, 10, sent=1_500_000 * offset),
                    last5=0.9 * sum(final) / 2,
                    oracle=sum(final) / 2,
                    personal=0.9 + 0.01 * seed if method == "fedlsa" else None,
                    partition_hash=f"{seed:016x}",
                )
            )
    cells.append(Planned("fedproto", 0, (0.7, float("nan")), rounds=10))
    cells += [Planned("fedproto", 1, error="out of memory"), Planned("fedproto", 2)]
    run = write_run(path, cells, tuning={"trials": 8, "search": "optuna", "selected_on": "validation"})
    with (run / cells[3].dir / "rounds.jsonl").open("a") as file:
        file.write('{"round": 11, "te')
    return run


def _write_cell(folder: Path, cell: Planned, domains: Sequence[str], suite: str) -> None:
    folder.mkdir(parents=True)
    _dump(
        folder / "config.json",
        {
            "schema": 1,
            "cell": cell.cell,
            "suite": {"name": suite, "version": 1},
            "variant": cell.variant,
            "dataset": {"name": cell.dataset},
            "partition": cell.partition,
            **({"encoder": cell.encoder} if cell.encoder else {}),
            **({"attackers": cell.attackers} if cell.attackers else {}),
            "model": {"name": "cnn"},
            "training": {**TRAINING, "rounds": cell.rounds, "validation": cell.validation, **cell.training},
            "evaluation": {"every": 5, "personal": cell.personal is not None},
            "method": {
                "name": cell.method,
                "version": cell.method_version,
                "hyperparameters": cell.hyperparameters,
            },
            "seed": cell.seed,
        },
    )
    lines = [json.dumps(line) for line in cell.history] or [
        json.dumps({"round": number, "test": dict(zip(domains, values, strict=True)), "bytes_up": 8})
        for number, values in cell.curve.items()
    ]
    (folder / "rounds.jsonl").write_text("".join(f"{line}\n" for line in lines))
    if cell.error is not None:
        _dump(folder / "error.json", {"error": cell.error, "traceback": "Traceback ..."})
    if cell.test is not None:
        _dump(
            folder / "result.json",
            {
                "schema": 1,
                "cell": cell.cell,
                "rounds": cell.rounds,
                "final": {
                    "test": dict(zip(domains, cell.test, strict=True)),
                    "personal": cell.personal,
                    "validation": None,
                },
                "last5_avg": cell.last5,
                "oracle": {"round": cell.rounds, "avg": cell.oracle},
                "bytes_up": 160,
                "bytes_down": 160,
                "dropped": cell.dropped,
                "provenance": {
                    "commit": cell.commit,
                    "data_checksum": cell.checksum,
                    "partition_hash": cell.partition_hash,
                    **({"contract": cell.contract} if cell.contract else {}),
                },
                "timing": {"wall_seconds": 1.0},
            },
        )


def _dump(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content))
