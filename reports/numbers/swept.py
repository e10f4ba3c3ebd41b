"""The place of a cell in a sweep, and the part of a swept run that ordinary tables show."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bench.config.cell import SECTIONS
from bench.records.reader import CellRecord, Run
from bench.text import symbol

OPTIMISER = "training.optimiser."
"""The only keys of a section that make rows: each row has a learning rate of its own."""
PROBLEM = ("dataset", "partition", "unseen", "attackers")
"""Sections that say what is to be learned. A user chooses the values of all other keys, but not of these."""
DATASET = ("dataset", "dataset.name")
FEW_ROWS = 16
FEW_SETTINGS = 6


@dataclass(frozen=True)
class MainPart:
    """The cells of a run that can be compared in one table."""

    run: Run
    left_out: str = ""
    """What the run has besides, in a sentence; empty if these are all of its cells."""


def is_swept(run: Run) -> bool:
    return any(cell.swept for cell in run.cells)


def makes_rows(key: str) -> bool:
    """Whether a sweep over the key makes more rows; other keys make more settings."""
    return key.partition(".")[0] not in SECTIONS or key.startswith(OPTIMISER)


def is_of_the_problem(key: str) -> bool:
    return key.partition(".")[0] in PROBLEM


def is_off_default(cell: CellRecord) -> bool:
    """Whether a sweep gave the row of the cell another value than it has by default."""
    return cell.swept is not None and any(makes_rows(key) for key in _moved(cell))


def settings_in_words(settings: Mapping[str, Any]) -> str:
    """`λ=0.1, β=0.5`; a symbol stands for one setting only, the next one has its full name."""
    shown: dict[str, str] = {}
    for key, value in settings.items():
        shown[key if symbol(key) in shown else symbol(key)] = value_in_words(value)
    return ", ".join(f"{name}={value}" for name, value in shown.items())


def value_in_words(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def main_part(run: Run) -> MainPart:
    """The run without what a large sweep adds to the defaults; the whole run if nothing else were left."""
    rows = {(cell.method, cell.label) for cell in run.cells if cell.swept and cell.label != cell.swept.row}
    settings = {cell.variant for cell in run.cells if cell.swept and cell.variant != cell.swept.setting}
    few_rows, few_settings = len(rows) <= FEW_ROWS, len(settings) <= FEW_SETTINGS
    kept = tuple(
        cell
        for cell in run.cells
        if all(few_rows if makes_rows(key) else few_settings for key in _moved(cell))
    )
    if not kept or len(kept) == len(run.cells):
        return MainPart(run)
    shown = {cell.swept.row for cell in kept if cell.swept}
    gone = dict.fromkeys(cell.swept.row for cell in run.cells if cell.swept and cell.swept.row not in shown)
    absent = f" The defaults of {', '.join(gone)} are not among the swept values." if gone else ""
    left_out = (
        f"Only the defaults of the sweep are shown here; {len(run.cells) - len(kept)} of {len(run.cells)} "
        f"cells have other values and are in the table of the sweep and in tables/sweep.csv.{absent}"
    )
    return MainPart(replace(run, cells=kept), left_out)


def _moved(cell: CellRecord) -> list[str]:
    """The swept keys whose value is not the default."""
    if cell.swept is None:
        return []
    return [key for key, value in cell.swept.values.items() if value != cell.swept.defaults.get(key)]
