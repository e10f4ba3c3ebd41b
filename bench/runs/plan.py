"""The plan of a run: its cells, its folder, and what the user changed of the suite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.data import dataset_spec
from bench.records.run_folder import RunFolder
from bench.records.schema import (
    DEFAULT_ROW,
    SHARED_ROW,
    PlannedRecord,
    PlanRecord,
    SuiteRecord,
    TableRecord,
)
from bench.runs.request import BOTH, EVERY, SHARED, RunRequest
from bench.runs.shard import Shard, parse_shard
from bench.suite.methods import METHODS
from bench.suite.model import Suite
from bench.suite.planning import PlannedCell, plan_cells
from bench.suite.rows import label_of, with_rows
from bench.suite.unseen import in_turn


@dataclass(frozen=True)
class Plan:
    suite: Suite
    cells: tuple[PlannedCell, ...]
    folder: RunFolder
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the user changed of the suite."""
    tuning: Mapping[str, Any] | None = None
    """How the hyperparameters were chosen, where a search did."""
    data_root: Path | None = None
    untuned: frozenset[str] = frozenset()
    """Labels of the rows that show the defaults beside tuned rows."""
    shard: Shard | None = None
    """The part of the cells that is to be run; None: all of them."""

    @property
    def own(self) -> tuple[PlannedCell, ...]:
        """The cells that are to be run here."""
        return self.shard.of(self.cells) if self.shard else self.cells

    def pending(self) -> list[PlannedCell]:
        """Those of its own cells that are not done; looks at the disk each time."""
        return [cell for cell in self.own if not self.folder.cell(cell.directory).is_done]

    def open_elsewhere(self) -> int:
        """How many cells of other shards have not ended, well or not."""
        own = {cell.cell_id for cell in self.own}
        others = [cell for cell in self.cells if cell.cell_id not in own]
        return sum(self.folder.cell(cell.directory).end_file is None for cell in others)

    def failures(self) -> dict[str, str]:
        """Folder of each unfinished cell of its own → why it failed."""
        return {
            cell.directory: self.folder.cell(cell.directory).failure() or "did not finish"
            for cell in self.pending()
        }

    def write(self) -> None:
        suite = self.suite
        self.folder.write_plan(
            PlanRecord(
                suite=SuiteRecord(name=suite.suite, version=suite.version, title=suite.title),
                table=TableRecord(**suite.table.model_dump(exclude_none=True)),
                domains=self._domains(),
                settings=dict(self.settings),
                tuning=dict(self.tuning) if self.tuning else None,
                cells=tuple(self._record(cell) for cell in self.cells),
            )
        )

    def _record(self, cell: PlannedCell) -> PlannedRecord:
        return cell.as_record().model_copy(update={"tuned": cell.row not in self.untuned})

    def _domains(self) -> tuple[str, ...]:
        """The domains that models are tested on, in the order of the suite's datasets."""
        choices = {cell.config.dataset.model_dump_json(): cell.config.dataset for cell in self.cells}
        specs = [dataset_spec(choice.name, choice.options, self.data_root) for choice in choices.values()]
        unseen = [cell.config.unseen.domain if cell.config.unseen else None for cell in self.cells]
        domains = dict.fromkeys(domain for spec in specs for domain in spec.domain_names())
        return tuple(domain for domain in domains if None in unseen or domain in unseen)


def plan_of(request: RunRequest) -> Plan:
    """The cells of the suite as asked for."""
    plan = _whole_plan(request)
    return plan if request.shard is None else replace(plan, shard=parse_shard(request.shard))


def _whole_plan(request: RunRequest) -> Plan:
    suite = request.loaded.resolved(METHODS.resolve)
    if request.methods is not None:
        suite = with_rows(suite, request.methods)
    if request.seeds is not None:
        suite = suite.model_copy(update={"seeds": request.seeds})
    settings, out = request.settings(), request.out.absolute()
    default = request.asked(suite)
    if not request.tuned:
        return make_plan(default, out, settings, None, request.data_root)
    from bench.search.shared import shared_suite
    from bench.search.tuned import side_by_side, tuned_suite

    tracks: dict[str, Suite] = {}
    tuning: dict[str, Any] = {}
    if request.tuned != SHARED:
        chosen, tuning = tuned_suite(suite, request.tuned_dir, request.data_root)
        tracks[""] = request.asked(chosen)
    if request.tuned in (SHARED, EVERY):
        chosen, record = shared_suite(suite, request.tuned_dir)
        ending = SHARED_ROW if tracks else ""
        tracks[ending] = request.asked(chosen)
        labels = {entry.label or entry.name: f"{label_of(entry)}{ending}" for entry in suite.methods}
        shared = {labels[name]: found for name, found in record["methods"].items()}
        tuning = {**record, **tuning, "methods": {**tuning.get("methods", {}), **shared}}
    if request.tuned in (BOTH, EVERY):
        tracks[DEFAULT_ROW] = default
    untuned = frozenset(f"{label_of(entry)}{DEFAULT_ROW}" for entry in suite.methods)
    whole = side_by_side(tracks, request.data_root)
    return make_plan(whole, out, settings, tuning, request.data_root, untuned)


def make_plan(
    suite: Suite,
    out: Path,
    settings: Mapping[str, Any],
    tuning: Mapping[str, Any] | None = None,
    data_root: Path | None = None,
    untuned: frozenset[str] = frozenset(),
) -> Plan:
    """Plan the suite's cells into a folder of its name below `out`."""
    suite = in_turn(suite, data_root)
    cells = tuple(plan_cells(suite, data_root))
    return Plan(suite, cells, RunFolder(out / suite.suite), settings, tuning, data_root, untuned)
