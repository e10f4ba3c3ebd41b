"""The history of a cell by round, in the units that figures use."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

from bench.records.reader import CellRecord
from bench.records.schema import RoundRecord, average, finite

State = Literal["done", "failed", "unfinished", "missing"]


def state_of(cell: CellRecord) -> State:
    """The state of a cell; `missing` if it has left no record at all."""
    if cell.result is not None:
        return "done"
    if cell.error is not None:
        return "failed"
    return "unfinished" if cell.rounds or cell.config else "missing"


def round_average(record: RoundRecord, domains: Sequence[str]) -> float | None:
    """AVG of one round in percent; None unless every domain has a finite value."""
    test = record.test or {}
    found = {domain: value for domain in domains if (value := finite(test.get(domain))) is not None}
    return 100 * average(found) if found and len(found) == len(domains) else None


def bytes_sent(record: RoundRecord) -> int | None:
    """Up and down in one round; None where the record does not say."""
    known = {"bytes_up", "bytes_down"} <= record.model_fields_set
    return record.bytes_up + record.bytes_down if known else None


def average_by_round(cell: CellRecord, domains: Sequence[str]) -> dict[int, float]:
    """AVG in percent by round, where every domain has a finite value."""
    averages = {record.round: round_average(record, domains) for record in cell.rounds}
    return {number: value for number, value in averages.items() if value is not None}


def bytes_by_round(cell: CellRecord) -> dict[int, float]:
    """Bytes sent up and down since the start, by round; empty if any round does not record them."""
    total = 0.0
    totals = {}
    for record in cell.rounds:
        sent = bytes_sent(record)
        if sent is None:
            return {}
        total += sent
        totals[record.round] = total
    return totals


def metrics_by_round(cell: CellRecord) -> dict[str, dict[int, float]]:
    """Metric → round → finite value; metrics in the order of their first appearance."""
    metrics: dict[str, dict[int, float]] = {}
    for record in cell.rounds:
        for name, value in record.metrics.items():
            series = metrics.setdefault(name, {})
            if (number := finite(value)) is not None:
                series[record.round] = number
    return metrics


def metric_groups(names: Sequence[str]) -> dict[str, list[str]]:
    """Metrics named `GROUP/MEMBER`, by group; groups with one member are left out."""
    groups: dict[str, list[str]] = {}
    for name in names:
        group, slash, member = name.partition("/")
        if slash and member:
            groups.setdefault(group, []).append(name)
    return {group: members for group, members in groups.items() if len(members) > 1}


def mean_over_seeds(series: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """The mean at each round that every seed has; over a varying set of seeds the curve would jump."""
    if not series:
        return {}
    shared = set.intersection(*(set(values) for values in series))
    return {number: statistics.fmean(values[number] for values in series) for number in sorted(shared)}
