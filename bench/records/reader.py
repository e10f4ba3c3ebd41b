"""Reads run folders into frozen records; tables, figures and frames are functions of nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.config.cell import CellConfig
from bench.errors import UserError
from bench.records.cell_folder import CellFolder, as_record
from bench.records.files import read_json
from bench.records.predictions import Predictions, read_predictions
from bench.records.run_folder import RunFolder
from bench.records.schema import (
    PartitionRecord,
    PlannedRecord,
    PlanRecord,
    Provenance,
    Result,
    RoundRecord,
    SuiteRecord,
    SweptRecord,
    TableRecord,
    average,
    finite,
    row_name,
)


@dataclass(frozen=True)
class CellRecord:
    """One planned cell and whatever it has left on disk so far."""

    cell_id: str
    method: str
    label: str
    variant: str
    seed: int
    config: CellConfig | None
    rounds: list[RoundRecord]
    result: Result | None
    error: str | None
    tuning: Mapping[str, Any] | None = None
    """How the hyperparameters of its run were found; None if those of the cell were not searched for."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What was changed of the suite for its run: dotted key → value."""
    swept: SweptRecord | None = None
    """Its place in a sweep; None if it is not part of one."""
    projection: Path | None = None
    """The file with test samples and anchors in two dimensions, if there is one."""
    predictions_file: Path | None = None
    """The file with the final predictions on the test sets; cells of older versions have none."""

    @property
    def name(self) -> str:
        """Row, variant and seed in words."""
        return row_name(self.label, self.variant, self.seed)

    @property
    def row(self) -> str:
        """The row of a table that the cell belongs to, with its variant."""
        return row_name(self.label, self.variant)

    @property
    def provenance(self) -> Provenance:
        """What the result says about code, data and machine; empty without a result."""
        return self.result.provenance if self.result else Provenance()

    @property
    def hyperparameters(self) -> Mapping[str, Any]:
        """Of the method; empty where the configuration is not on disk."""
        return self.config.method.hyperparameters if self.config else {}

    @property
    def chosen(self) -> Mapping[str, Any]:
        """What the run's record of tuning says about the cell's row; empty if it was not tuned."""
        rows = (self.tuning or {}).get("methods")
        label = self.swept.row if self.swept else self.label
        entry = rows.get(label, rows.get(self.method)) if isinstance(rows, Mapping) else None
        return entry if isinstance(entry, Mapping) else {}

    @property
    def at_bound(self) -> Mapping[str, Any]:
        """The keys whose tuned value lies at an end of its search range → which end."""
        found = self.chosen.get("at_bound")
        return found if isinstance(found, Mapping) else {}

    @property
    def shared_by(self) -> Sequence[str]:
        """The suites whose common setting the cell has; empty if it has none."""
        found = self.chosen.get("shared_by")
        return found if isinstance(found, Sequence) else ()

    @property
    def tuned_values(self) -> Mapping[str, Any]:
        """What a search chose for the cell's method: key → value; empty if it kept the defaults."""
        found = self.chosen.get("set")
        return found if isinstance(found, Mapping) else {}

    @property
    def dropped(self) -> int:
        """How many of the clients' replies held NaN or infinity and were left out."""
        return self.result.dropped if self.result else 0

    @property
    def replies(self) -> int:
        return sum(line.clients for line in self.rounds)

    @property
    def as_published(self) -> bool:
        """Whether the cell follows a paper's code to the letter, best round on test included."""
        return bool(self.hyperparameters.get("as_published"))

    @cached_property
    def predictions(self) -> Predictions | None:
        """The final predictions on the test sets, read when first asked for; None if they were not kept."""
        return read_predictions(self.predictions_file) if self.predictions_file else None

    def accuracy(self, domain: str) -> float | None:
        """Test accuracy on a domain as a fraction, of the final round; None if there is no finite value.

        Of the best round on test where the cell follows a paper's code that selects it.
        """
        return finite(self._selected.get(domain)) if self.result else None

    def average(self, domains: tuple[str, ...]) -> float | None:
        """AVG over these domains as a fraction; None unless every one of them has a finite value."""
        found = {domain: value for domain in domains if (value := self.accuracy(domain)) is not None}
        return average(found) if found and len(found) == len(domains) else None

    @cached_property
    def _selected(self) -> Mapping[str, float | None]:
        """The test accuracies of the round that counts."""
        assert self.result is not None and self.result.final.test is not None
        final = self.result.final.test
        if not self.as_published:
            return final
        best = self.result.oracle.round if self.result.oracle else None
        if best is None:  # the final round would pass for the best one
            return {}
        return next((line.test for line in self.rounds if line.round == best and line.test), final)

    @property
    def personal(self) -> float | None:
        """Final mean over clients of own-test accuracy as a fraction; None if there is no finite value."""
        return finite(self.result.final.personal) if self.result else None


@dataclass(frozen=True)
class Run:
    """A plan and its cells, in the plan's order."""

    sources: tuple[Path, ...]
    """The folders it was read from: one, or several if runs were merged."""
    suite: SuiteRecord
    layout: TableRecord
    """The kind of table that the plan asks for, and its settings."""
    domains: tuple[str, ...]
    cells: tuple[CellRecord, ...]
    partition: PartitionRecord | None = None
    """Who has which data, for the first setting and seed; None where that was not recorded."""

    @property
    def name(self) -> str:
        """The folders it was read from, in words."""
        return " + ".join(map(str, self.sources))

    @property
    def kind(self) -> str:
        """The kind of table that the plan asks for."""
        return self.layout.kind

    @property
    def settings(self) -> Mapping[str, Any]:
        """What was changed of the suite, as the first cell has it."""
        return self.cells[0].settings

    @property
    def variants(self) -> tuple[str, ...]:
        """The settings of the suite that the plan holds, in order; a lone one may have the name ""."""
        return tuple(dict.fromkeys(cell.variant for cell in self.cells))


def load_run(path: Path) -> Run:
    """Read the plan of a run folder and the records of every planned cell."""
    folder = RunFolder(path)
    if not folder.has_plan:
        raise UserError(
            f"no plan.json in {path}; give the folder of a run, or make one with `bench run --suite NAME`"
        )
    plan = as_record(PlanRecord, read_json(folder.plan), folder.plan, "run the suite again to write it again")
    if not plan.cells:
        raise UserError(f"{folder.plan} plans no cells; run the suite with at least one method and one seed")
    run = Run(
        sources=(path,),
        suite=plan.suite,
        layout=plan.table,
        domains=plan.domains,
        cells=tuple(_load_cell(folder, plan, planned) for planned in plan.cells),
        partition=folder.read_partition(),
    )
    check_planned_once(run, folder.plan, "run the suite again to write it again")
    return run


def _load_cell(run: RunFolder, plan: PlanRecord, planned: PlannedRecord) -> CellRecord:
    folder = run.cell(planned.directory)
    config, result = folder.config(), folder.result()
    for record, name in ((config, "config.json"), (result, "result.json")):
        if record is not None and record.cell_id != planned.cell_id:
            raise UserError(
                f"{folder.path / name} belongs to cell {record.cell_id}, but the plan expects "
                f"{planned.cell_id}; delete the folder {folder.path} and run the suite again"
            )
    if result and result.final.test is None:
        raise UserError(f"{folder.path / 'result.json'} has no final.test; delete it and run the suite again")
    return CellRecord(
        cell_id=planned.cell_id,
        method=planned.method,
        label=planned.label,
        variant=planned.variant,
        seed=planned.seed,
        config=config,
        rounds=folder.rounds(),
        result=result,
        error=None if result else folder.failure(),
        tuning=plan.tuning if planned.tuned else None,
        settings=plan.settings or {},
        swept=planned.swept,
        projection=folder.projection if folder.projection.is_file() else None,
        predictions_file=folder.predictions if result and folder.predictions.is_file() else None,
    )


def check_planned_once(run: Run, file: Path, remedy: str) -> None:
    """A UserError if two cells have the same place in the table."""
    counts = Counter((cell.method, cell.label, cell.variant, cell.seed) for cell in run.cells)
    for (_, label, variant, seed), count in counts.items():
        if count > 1:
            raise UserError(f"{file} plans {row_name(label, variant, seed)} {count} times; {remedy}")


__all__ = ["CellFolder", "CellRecord", "Run", "load_run"]
