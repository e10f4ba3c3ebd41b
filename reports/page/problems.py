"""Sentences about what is missing from a run."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from bench.records.reader import CellRecord, Run
from reports.numbers.history import State, state_of
from reports.numbers.scores import domains_of


def problems(run: Run) -> list[str]:
    """One sentence per kind of problem; empty if the run is complete."""
    by_state: dict[State, list[CellRecord]] = {state: [] for state in get_args(State)}
    for cell in run.cells:
        by_state[state_of(cell)].append(cell)
    sentences = []
    failures: dict[str, list[CellRecord]] = {}
    for cell in by_state["failed"]:
        failures.setdefault(cell.error or "", []).append(cell)
    for error, cells in failures.items():
        sentences.append(f"Failed: {_names(cells)}: {error}")
    if cells := by_state["unfinished"]:
        sentences.append(f"Not finished, left out of the tables: {_names(cells)}.")
    if cells := by_state["missing"]:
        sentences.append(f"Planned, not started: {_names(cells)}.")
    finished = by_state["done"]
    if cells := [cell for cell in finished if _cut_short(cell)]:
        sentences.append(f"The history ends before the last round: {_names(cells)}.")
    domains = {variant: domains_of(run, variant) for variant in run.variants}
    if cells := [cell for cell in finished if _without_value(cell, domains[cell.variant])]:
        sentences.append(f"Final accuracy is not finite and counts as missing: {_names(cells)}.")
    if cells := [cell for cell in run.cells if any(map(_not_finite, _values(cell)))]:
        sentences.append(
            f"Values in the history that are not finite are left out of the curves: {_names(cells)}."
        )
    return sentences


def _names(cells: Sequence[CellRecord], most: int = 6) -> str:
    """`FedAvg seeds 0, 1; FedProx β=0.1 seed 2`, and how many more."""
    seeds: dict[str, list[str]] = {}
    for cell in cells:
        seeds.setdefault(cell.row, []).append(str(cell.seed))
    named = [
        f"{name} seed{'s' if len(own) > 1 else ''} {', '.join(own)}"
        for name, own in list(seeds.items())[:most]
    ]
    if len(seeds) > most:
        named.append(f"and {len(seeds) - most} more")
    return "; ".join(named)


def _cut_short(cell: CellRecord) -> bool:
    return cell.result is not None and (not cell.rounds or cell.rounds[-1].round < cell.result.rounds)


def _without_value(cell: CellRecord, domains: Sequence[str]) -> bool:
    return any(cell.accuracy(domain) is None for domain in domains)


def _values(cell: CellRecord) -> Iterator[Any]:
    for record in cell.rounds:
        yield from (record.test or {}).values()
        yield from record.metrics.values()


def _not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
