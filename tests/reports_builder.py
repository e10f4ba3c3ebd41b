"""Writes run directories for the tests of reports/, in the format of the records."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
    commit: str | None = COMMIT
    checksum: str = CHECKSUM
    validation: float = 0.0
    hyperparameters: dict[str, Any] = field(default_factory=dict)

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
    **plan: Any,
) -> Path:
    """Write plan and records; returns the run directory."""
    path.mkdir(parents=True, exist_ok=True)
    _dump(
        path / "plan.json",
        {
            "schema": 1,
            "suite": {"name": suite, "version": 1, "title": "Digits, two domains"},
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
                }
                for cell in cells
            ],
            **plan,
        },
    )
    for cell in cells:
        if cell.test is not None or cell.error is not None or cell.curve:
            _write_cell(path / cell.dir, cell, domains, suite)
    return path


def _write_cell(folder: Path, cell: Planned, domains: Sequence[str], suite: str) -> None:
    folder.mkdir(parents=True)
    _dump(
        folder / "config.json",
        {
            "schema": 1,
            "cell": cell.cell,
            "suite": {"name": suite, "version": 1},
            "variant": cell.variant,
            "dataset": {"name": "digits_mini"},
            "partition": {"name": "by_domain"},
            "model": {"name": "cnn"},
            "training": {"rounds": cell.rounds, "validation": cell.validation},
            "method": {"name": cell.method, "version": 1, "hyperparameters": cell.hyperparameters},
            "seed": cell.seed,
        },
    )
    lines = [
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
                "bytes_up": 160,
                "bytes_down": 160,
                "dropped": 0,
                "provenance": {"commit": cell.commit, "data_checksum": cell.checksum},
                "timing": {"wall_seconds": 1.0},
            },
        )


def _dump(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content))
