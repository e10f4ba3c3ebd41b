"""Rounds and bytes until a tuned row reaches the validation accuracy of tuned FedAvg, from the searches."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from bench.records.cell_folder import CellFolder
from bench.search.plan import Search
from bench.search.tuned import ToTarget, Tuned

REFERENCE = "fedavg"


def with_targets(searches: Sequence[Search], tuned: Sequence[Tuned | None]) -> list[Tuned | None]:
    """What was chosen, with the effort of each row, where the first FedAvg row was tuned with it."""
    reference = next((found for found in tuned if found and found.method == REFERENCE), None)
    if reference is None:
        return list(tuned)
    target = reference.best.validation
    return [
        found and found.model_copy(update={"to_target": effort(search, found, target)})
        for search, found in zip(searches, tuned, strict=True)
    ]


def effort(search: Search, tuned: Tuned, target: float) -> ToTarget:
    """Of the best trial: the first measured round at which the mean over its cells reaches the target."""
    best = search.journal()[tuned.best.trial]
    reached = [number for number, validation in search.history(best) if validation >= target - 1e-9]
    if not reached:
        return ToTarget(accuracy=target)
    sent = fmean(_bytes(folder, reached[0]) for folder in search.folders(best))
    return ToTarget(accuracy=target, rounds=reached[0], megabytes=round(sent / 1e6, 3))


def _bytes(folder: CellFolder, last: int) -> int:
    return sum(line.bytes_up + line.bytes_down for line in folder.rounds() if line.round <= last)
