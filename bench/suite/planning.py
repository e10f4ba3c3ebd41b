"""From a suite to its cells: every configuration filled in, checked, and named by its hash."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from bench.data import dataset_spec
from bench.data.partitions import partition_spec
from bench.encoders import encoder_spec
from bench.errors import UserError
from bench.models import model_spec
from bench.suite.methods import METHODS
from bench.suite.model import MethodEntry, Suite
from bench.validation import validated, validated_union

SCHEMA = 1


@dataclass(frozen=True)
class PlannedCell:
    cell: str
    """The hash of the configuration."""
    config: dict[str, Any]
    method: str
    label: str
    variant: str
    seed: int

    @property
    def directory(self) -> str:
        return f"cells/{re.sub(r'[^a-z0-9_+]', '-', self.method)}-s{self.seed}-{self.cell}"


def plan_cells(suite: Suite) -> list[PlannedCell]:
    """Every cell of the suite, in the order of the table's rows."""
    variants = suite.variants or (None,)
    cells = []
    for variant in variants:
        setting = suite.changed(variant.set) if variant else suite
        name = variant.name if variant else ""
        for entry in setting.methods:
            cells += [_planned(setting, entry, name, seed) for seed in range(suite.seeds)]
    _refuse_equal_rows(cells)
    return cells


def identity(config: dict[str, Any]) -> str:
    canonical = json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def setting_of(config: dict[str, Any]) -> str:
    """What the cells of a search and of a run share if a choice made in the one is meant for the other."""
    training = {
        key: value for key, value in config["training"].items() if key not in ("rounds", "validation")
    }
    sections = ("dataset", "partition", "encoder", "model")
    return identity({**{section: config.get(section) for section in sections}, "training": training})


def _planned(suite: Suite, entry: MethodEntry, variant: str, seed: int) -> PlannedCell:
    from methods.core.optimisers import Optimiser

    kind = METHODS.load(entry.name)
    method = validated(kind, entry.set, f"method '{entry.name}'")
    dataset = dict(suite.dataset)
    name = _name(dataset, "dataset")
    model = entry.model or kind.own_model or suite.model
    optimiser = validated_union(Optimiser, suite.training.optimiser, "training.optimiser")
    config: dict[str, Any] = {
        "schema": SCHEMA,
        "suite": {"name": suite.suite, "version": suite.version},
        "variant": variant,
        "dataset": {"name": name, **dataset_spec(name, dataset).model_dump(mode="json")},
        "partition": partition_spec(suite.partition).model_dump(mode="json"),
        **_encoder(suite),
        "model": {"name": model.get("name"), **model_spec(model).model_dump(mode="json")},
        "training": {
            **suite.training.model_dump(mode="json"),
            "optimiser": optimiser.model_dump(mode="json"),
        },
        "evaluation": suite.evaluation.model_dump(mode="json"),
        "method": {
            "name": entry.name,
            "version": kind.version,
            "hyperparameters": method.model_dump(mode="json"),
        },
        "seed": seed,
    }
    label = entry.label or kind.label
    cell = identity(config)
    return PlannedCell(cell, {"cell": cell, **config}, entry.name, label, variant, seed)


def _encoder(suite: Suite) -> dict[str, Any]:
    if suite.encoder is None:
        return {}
    encoder_spec(suite.encoder.name)
    return {"encoder": suite.encoder.model_dump(mode="json")}


def _name(mapping: dict[str, Any], where: str) -> str:
    if "name" not in mapping:
        raise UserError(f"{where}: key 'name' is missing; give it a value")
    return str(mapping.pop("name"))


def _refuse_equal_rows(cells: list[PlannedCell]) -> None:
    seen: dict[str, PlannedCell] = {}
    rows: set[tuple[str, str, int]] = set()
    for cell in cells:
        if (cell.label, cell.variant, cell.seed) in rows and cell.cell not in seen:
            row = " ".join(filter(None, (cell.label, cell.variant)))
            raise UserError(
                f"the suite has two rows '{row}'; give each a 'label', and each variant a 'name', of its own"
            )
        rows.add((cell.label, cell.variant, cell.seed))
        if cell.cell in seen:
            raise UserError(
                f"rows '{seen[cell.cell].label}' and '{cell.label}' of the suite are the same configuration; "
                "remove one or change a hyperparameter"
            )
        seen[cell.cell] = cell
