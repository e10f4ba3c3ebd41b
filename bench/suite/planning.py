"""From a suite to its cells: every configuration filled in, checked, and named by its hash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.config.cell import CellConfig, Choice, EncoderChoice, MethodChoice, SuiteReference
from bench.data import spec_of_section
from bench.data.partitions import partition_spec
from bench.encoders import encoder_spec
from bench.errors import UserError
from bench.models import model_options, model_spec
from bench.records.schema import PlannedRecord, row_name
from bench.suite.methods import METHODS
from bench.suite.model import MethodEntry, Suite
from bench.suite.unseen import in_turn
from bench.validation import validated, validated_union


@dataclass(frozen=True)
class PlannedCell:
    """A cell and the row of the table it belongs to."""

    config: CellConfig
    label: str

    @property
    def cell_id(self) -> str:
        return self.config.cell_id

    @property
    def method(self) -> str:
        return self.config.method.name

    @property
    def variant(self) -> str:
        return self.config.variant

    @property
    def seed(self) -> int:
        return self.config.seed

    @property
    def directory(self) -> str:
        """The cell's folder, relative to that of its run."""
        return self.config.directory

    @property
    def name(self) -> str:
        """Row, variant and seed in words."""
        return row_name(self.label, self.variant, self.seed)

    def as_record(self) -> PlannedRecord:
        return PlannedRecord(
            cell_id=self.cell_id,
            directory=self.directory,
            method=self.method,
            label=self.label,
            variant=self.variant,
            seed=self.seed,
        )


def plan_cells(suite: Suite, data_root: Path | None = None) -> list[PlannedCell]:
    """Every cell of the suite, in the order of the table's rows; own data are looked for in `data_root`."""
    cells = []
    suite = in_turn(suite, data_root)
    for variant in suite.variants or (None,):
        setting = suite.changed(variant.set) if variant else suite
        name = variant.name if variant else ""
        for entry in setting.methods:
            cells += _row(setting, entry, name, data_root)
    _refuse_equal_rows(cells)
    return cells


def _row(suite: Suite, entry: MethodEntry, variant: str, data_root: Path | None) -> list[PlannedCell]:
    """The cells of one row: everything but the seed is worked out once."""
    from methods.core.optimisers import Optimiser

    name = METHODS.resolve(entry.name)
    kind = METHODS.load(name)
    method = validated(kind, entry.set, f"method '{name}'")
    model = model_options(entry.model or kind.own_model or suite.model)
    optimiser = validated_union(Optimiser, suite.training.optimiser, "training.optimiser")
    sections: dict[str, Any] = {
        "suite": SuiteReference(name=suite.suite, version=suite.version),
        "variant": variant,
        "dataset": _dataset(suite.dataset, data_root),
        "partition": Choice(**partition_spec(suite.partition).model_dump(mode="json")),
        "unseen": suite.unseen,
        "attackers": suite.attackers,
        "encoder": _encoder(suite),
        "model": Choice(**{"name": model["name"], **model_spec(model).model_dump(mode="json")}),
        "training": suite.training.model_copy(update={"optimiser": optimiser.model_dump(mode="json")}),
        "evaluation": suite.evaluation,
        "method": MethodChoice(
            name=name,
            version=kind.version,
            hyperparameters=method.model_dump(mode="json"),
            source=METHODS.source_digest(name),
        ),
    }
    label = entry.label or kind.label
    return [PlannedCell(CellConfig.identified(**sections, seed=seed), label) for seed in range(suite.seeds)]


def _dataset(options: Mapping[str, Any], data_root: Path | None) -> Choice:
    spec = spec_of_section(options, data_root)
    return Choice(**{"name": options["name"], **spec.model_dump(mode="json")})


def _encoder(suite: Suite) -> EncoderChoice | None:
    if suite.encoder is None:
        return None
    return suite.encoder.model_copy(update={"name": encoder_spec(suite.encoder.name).name})


def _refuse_equal_rows(cells: list[PlannedCell]) -> None:
    seen: dict[str, PlannedCell] = {}
    names: set[str] = set()
    for cell in cells:
        if cell.name in names and cell.cell_id not in seen:
            row = row_name(cell.label, cell.variant)
            raise UserError(
                f"the suite has two rows '{row}'; give each a 'label', and each variant a 'name', of its own"
            )
        names.add(cell.name)
        if cell.cell_id in seen:
            raise UserError(
                f"rows '{seen[cell.cell_id].label}' and '{cell.label}' of the suite are the same "
                "configuration; remove one or change a hyperparameter"
            )
        seen[cell.cell_id] = cell
