"""What a cell went through, round by round, in the units that pictures use."""

import statistics
from collections.abc import Mapping, Sequence

from bench.records.reader import CellRecord, finite


def average_by_round(cell: CellRecord, domains: Sequence[str]) -> dict[int, float]:
    """AVG in percent by round, where every domain has a finite value."""
    averages = {}
    for record in cell.rounds:
        test = record.get("test") or {}
        values = [value for domain in domains if (value := finite(test.get(domain))) is not None]
        if values and len(values) == len(domains):
            averages[record["round"]] = 100 * statistics.fmean(values)
    return averages


def bytes_by_round(cell: CellRecord) -> dict[int, float]:
    """Bytes sent up and down from the start to the end of each round; empty if a round has none on record."""
    total = 0.0
    totals = {}
    for record in cell.rounds:
        sent = [finite(record.get(key)) for key in ("bytes_up", "bytes_down")]
        if None in sent:
            return {}
        total += sum(value for value in sent if value is not None)
        totals[record["round"]] = total
    return totals


def metrics_by_round(cell: CellRecord) -> dict[str, dict[int, float]]:
    """Metric → round → value, as far as it is finite; metrics in the order in which they appear."""
    metrics: dict[str, dict[int, float]] = {}
    for record in cell.rounds:
        for name, value in (record.get("metrics") or {}).items():
            series = metrics.setdefault(name, {})
            if (number := finite(value)) is not None:
                series[record["round"]] = number
    return metrics


def metric_groups(names: Sequence[str]) -> dict[str, list[str]]:
    """Metrics named `GROUP/MEMBER`, by group; a group of one is none."""
    groups: dict[str, list[str]] = {}
    for name in names:
        group, slash, member = name.partition("/")
        if slash and member:
            groups.setdefault(group, []).append(name)
    return {group: members for group, members in groups.items() if len(members) > 1}


def mean_over_seeds(series: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """The mean at each round that every seed has: one over changing seeds would jump where one drops out."""
    if not series:
        return {}
    shared = set.intersection(*(set(values) for values in series))
    return {number: statistics.fmean(values[number] for values in series) for number in sorted(shared)}
