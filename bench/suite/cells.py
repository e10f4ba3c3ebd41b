"""A planned cell, and the configurations of a row: filled in, checked, and named by their hash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.config.cell import CellConfig, Choice, EncoderChoice, MethodChoice, SuiteReference
from bench.data import spec_of_section
from bench.data.partitions import partition_spec
from bench.encoders import encoder_spec
from bench.models import model_options, model_spec
from bench.records.schema import PlannedRecord, SweptRecord, row_name
from bench.suite.methods import METHODS
from bench.suite.model import MethodEntry, Suite
from bench.validation import validated, validated_union


@dataclass(frozen=True)
class PlannedCell:
    """A cell and the row of the table it belongs to."""

    config: CellConfig
    label: str
    variant: str
    """The setting of the table that it belongs to: the variant of the suite, and what a sweep makes of it."""
    swept: SweptRecord | None = None
    """Its place in a sweep; None if it is not part of one."""

    @property
    def cell_id(self) -> str:
        return self.config.cell_id

    @property
    def method(self) -> str:
        return self.config.method.name

    @property
    def seed(self) -> int:
        return self.config.seed

    @property
    def row(self) -> str:
        """The label of its row before a sweep."""
        return self.swept.row if self.swept else self.label

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
            swept=self.swept,
        )


def row_configs(
    suite: Suite, entry: MethodEntry, variant: str, data_root: Path | None, seeds: Sequence[int] | None = None
) -> list[CellConfig]:
    """The configurations of one row, by default for all seeds: everything but the seed is worked out once."""
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
    return [CellConfig.identified(**sections, seed=seed) for seed in seeds or range(suite.seeds)]


def _dataset(options: Mapping[str, Any], data_root: Path | None) -> Choice:
    spec = spec_of_section(options, data_root)
    return Choice(**{"name": options["name"], **spec.model_dump(mode="json")})


def _encoder(suite: Suite) -> EncoderChoice | None:
    if suite.encoder is None:
        return None
    return suite.encoder.model_copy(update={"name": encoder_spec(suite.encoder.name).name})
