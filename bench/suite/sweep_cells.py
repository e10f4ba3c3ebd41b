"""The cells of a sweep: every combination of the swept values, each an ordinary cell.

Keys of rows (`fedlsa.lam`) make more rows, and only of the methods that have them; keys of sections
(`partition.beta`) make more settings. A configuration is what it would be if its values had been given with
`--set`, so a cell that exists already is not computed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.config.cell import CellConfig
from bench.errors import UserError
from bench.records.schema import SweptRecord
from bench.suite.cells import PlannedCell, row_configs
from bench.suite.methods import METHODS, own_optimiser
from bench.suite.model import MethodEntry, Suite
from bench.suite.overrides import OPTIMISER, address, assign_to_row
from bench.suite.rows import label_of
from bench.suite.sweeps import Grid, combinations
from bench.text import symbol

TRAINING_OPTIMISER = f"training.{OPTIMISER}."
"""Keys that a sweep takes to be about the clients' optimiser in every row."""


@dataclass(frozen=True)
class SweptKeys:
    """The keys of a sweep by what they are about."""

    settings: Sequence[str]
    """Keys of sections."""
    rows: Sequence[Mapping[str, str]]
    """For each row of the suite: key as given → key within the row."""


def swept_keys(suite: Suite) -> SweptKeys:
    """What the swept keys of the suite are about; a UserError if one is about nothing in it."""
    entries = [entry.model_dump(exclude_unset=True) for entry in suite.methods]
    settings: list[str] = []
    rows: list[dict[str, str]] = [{} for _ in entries]
    for key in dict.fromkeys(key for grid in suite.sweep for key in grid):
        if "." not in key:  # a whole section, or a mistake that `changed` reports
            settings.append(key)
            continue
        about = address(key.removeprefix("training.") if key.startswith(TRAINING_OPTIMISER) else key, entries)
        if about.rows is None:
            settings.append(key)
        for position in about.rows or ():
            if about.key.startswith(f"{OPTIMISER}.") and METHODS.load(suite.methods[position].name).one_round:
                continue  # no client takes a step
            if about.key in rows[position].values():
                raise UserError(
                    f"cannot sweep '{key}': another swept key sets the same in the row "
                    f"'{label_of(suite.methods[position])}'"
                )
            rows[position][key] = about.key
    return SweptKeys(settings, rows)


def swept_cells(suite: Suite, variant: str, data_root: Path | None) -> list[PlannedCell]:
    """The cells of one variant of a suite with a sweep: setting by setting, row by row."""
    keys = swept_keys(suite)
    planned: dict[str, dict[tuple[int, str], list[PlannedCell]]] = {}
    for cell, position in _points(suite, variant, keys, data_root):
        row = planned.setdefault(cell.variant, {}).setdefault((position, cell.label), [])
        if cell.cell_id not in [other.cell_id for other in row]:
            row.append(cell)
    rows = [
        rows for setting in planned.values() for rows in sorted(setting.items(), key=lambda row: row[0][0])
    ]
    return [cell for _, cells in rows for cell in cells]


def _points(
    suite: Suite, variant: str, keys: SweptKeys, data_root: Path | None
) -> Iterator[tuple[PlannedCell, int]]:
    """The cells of every combination in every grid, with the position of the row they belong to."""
    defaults = [
        _values(row_configs(suite, entry, variant, data_root, seeds=[0])[0], keys.settings, own, {})
        for entry, own in zip(suite.methods, keys.rows, strict=True)
    ]
    for grid in suite.sweep:
        of_settings = {key: values for key, values in grid.items() if key in keys.settings}
        for settings in combinations(of_settings):
            setting = suite.changed(settings) if settings else suite
            for position, entry in enumerate(setting.methods):
                own = keys.rows[position]
                of_row: Grid = {key: values for key, values in grid.items() if key in own}
                plain = row_settings(row_configs(setting, entry, variant, data_root, seeds=[0])[0])
                for chosen in combinations(of_row):
                    changed = {own[key]: value for key, value in chosen.items()}
                    changed = {key: value for key, value in changed.items() if value_at(plain, key) != value}
                    row = with_values(entry, changed, setting)
                    configs = row_configs(setting, row, variant, data_root)
                    values = _values(configs[0], keys.settings, own, settings)
                    label = _named(label_of(entry), {key: values[key] for key in own}, " ")
                    name = _named(variant, {key: values[key] for key in keys.settings}, ", ")
                    swept = SweptRecord(
                        row=label_of(entry), setting=variant, values=values, defaults=defaults[position]
                    )
                    for config in configs:
                        yield PlannedCell(config, label, name, swept), position


def with_values(entry: MethodEntry, values: Mapping[str, Any], suite: Suite) -> MethodEntry:
    """The row with other values at dotted keys of its settings."""
    raw = entry.model_dump(exclude_unset=True)
    for key, value in values.items():
        assign_to_row(raw, key, value, suite.training.optimiser, key)
    return MethodEntry(**raw)


def _values(
    config: CellConfig, of_settings: Sequence[str], of_row: Mapping[str, str], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Swept key → its value in this configuration; of a whole section, what was given or its name."""
    sections, settings = config.model_dump(mode="json"), row_settings(config)
    found = {key: _text(value_at(sections, key), given.get(key)) for key in of_settings}
    return found | {key: value_at(settings, within) for key, within in of_row.items()}


def _text(value: Any, given: Any) -> Any:
    """A whole section in words: what was given of it, or its name."""
    if not isinstance(value, Mapping):
        return value
    if not isinstance(given, Mapping):
        return value.get("name", str(value))
    return " ".join(
        [str(given.get("name", "")), *(f"{k}={v}" for k, v in given.items() if k != "name")]
    ).strip()


def row_settings(config: CellConfig) -> dict[str, Any]:
    """A method's hyperparameters, with the optimiser that its clients use."""
    settings = dict(config.method.hyperparameters)
    settings[OPTIMISER] = own_optimiser(config.method.name, settings) or config.training.optimiser
    return settings


def value_at(settings: Any, key: str) -> Any:
    """The value at a dotted key; None where there is none."""
    for part in key.split("."):
        settings = settings.get(part) if isinstance(settings, Mapping) else None
    return settings


def _named(name: str, values: Mapping[str, Any], joint: str) -> str:
    """`FedLSA λ=0.1, τ=0.05`; a symbol stands for one key only, the next one has its full name."""
    shown: dict[str, str] = {}
    for key, value in values.items():
        shown[key if symbol(key) in shown else symbol(key)] = (
            f"{value:g}" if isinstance(value, float) else str(value)
        )
    words = ", ".join(f"{key}={value}" for key, value in shown.items())
    return joint.join(filter(None, (name, words)))
