"""From a suite to its cells."""

from __future__ import annotations

from pathlib import Path

from bench.errors import UserError
from bench.records.schema import row_name
from bench.suite.cells import PlannedCell, row_configs
from bench.suite.model import Suite
from bench.suite.rows import label_of
from bench.suite.sweep_cells import swept_cells
from bench.suite.unseen import in_turn


def plan_cells(suite: Suite, data_root: Path | None = None) -> list[PlannedCell]:
    """Every cell of the suite, in the order of the table's rows; own data are looked for in `data_root`."""
    suite = in_turn(suite, data_root)
    cells: list[PlannedCell] = []
    for variant in suite.variants or (None,):
        setting = suite.changed(variant.set) if variant else suite
        name = variant.name if variant else ""
        if suite.sweep:
            cells += swept_cells(setting, name, data_root)
            continue
        for entry in setting.methods:
            label = label_of(entry)
            cells += [
                PlannedCell(config, label, name) for config in row_configs(setting, entry, name, data_root)
            ]
    _refuse_equal_rows(cells)
    return cells


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
