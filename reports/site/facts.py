"""What the pages are made from: runs, their reports, and what is known of methods beside their results."""

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bench.records.reader import Run
from reports.numbers.ranking import comparable
from reports.numbers.scores import RowScores, reference_of, rows_of
from reports.report import RankingReport, Report


@dataclass(frozen=True)
class Hyperparameter:
    name: str
    default: str
    meaning: str
    allowed: str = ""
    paper: str = ""
    """The values that the method's authors tried or took."""
    searched: str = ""
    """The range that a search draws from; empty if it is not searched."""


@dataclass(frozen=True)
class MethodInfo:
    """A method as its source describes it."""

    name: str
    label: str
    summary: str
    text: str
    """Citation and equations, line by line."""
    hyperparameters: tuple[Hyperparameter, ...] = ()


@dataclass(frozen=True)
class Standing:
    """How a row of a table did in one suite and variant; accuracies in percent."""

    run: Run
    variant: str
    row: RowScores
    reference: RowScores | None
    place: int
    """1 for the highest mean AVG among the rows that are ranked; 0 if it is not."""
    ranked: int

    @cached_property
    def averages(self) -> Sequence[float]:
        return list(self.row.averages().values())

    @cached_property
    def gains(self) -> Sequence[float]:
        """AVG minus that of the reference, by seeds that both have; empty for the reference itself."""
        if self.reference is None or self.reference.key == self.row.key:
            return []
        ours, theirs = self.row.averages(), self.reference.averages()
        return [ours[seed] - theirs[seed] for seed in ours if seed in theirs]

    @property
    def megabytes(self) -> float | None:
        """Sent up and down in a whole run, mean over seeds."""
        totals = [cell.result.bytes_up + cell.result.bytes_down for cell in self.row.cells if cell.result]
        return statistics.fmean(totals) / 1e6 if totals else None

    @property
    def seconds(self) -> float | None:
        found = list(self.row.seconds().values())
        return statistics.fmean(found) if found else None

    @property
    def tuned(self) -> Mapping[str, Any] | None:
        """What a search chose beyond the defaults; None if the row was not tuned."""
        first = self.row.cells[0]
        return first.tuned_values if first.chosen else None


@dataclass(frozen=True)
class Facts:
    runs: Sequence[Run]
    methods: Mapping[str, MethodInfo]

    @cached_property
    def reports(self) -> Mapping[str, Report]:
        return {run.suite.name: Report(run) for run in self.runs}

    @cached_property
    def ranking(self) -> RankingReport:
        return RankingReport(comparable(self.runs))

    @cached_property
    def standings(self) -> Mapping[str, Sequence[Standing]]:
        """Method → its rows in every suite."""
        found: dict[str, list[Standing]] = {name: [] for name in self.methods}
        for run in self.runs:
            for variant in run.variants:
                for standing in standings_of(run, variant):
                    found.setdefault(standing.row.method, []).append(standing)
        return found

    def label(self, method: str) -> str:
        """How a method is called."""
        if method in self.methods:
            return self.methods[method].label
        return next((each.row.label for each in self.standings.get(method, ())), method)


def standings_of(run: Run, variant: str) -> list[Standing]:
    """The rows of a variant in the order of the plan."""
    rows = rows_of(run, variant)
    reference = reference_of(rows)
    means = {
        row.key: statistics.fmean(row.averages().values()) for row in rows if row.ranked and row.averages()
    }
    order = sorted(means, key=lambda key: -means[key])
    return [
        Standing(
            run, variant, row, reference, order.index(row.key) + 1 if row.key in means else 0, len(order)
        )
        for row in rows
    ]


def file_name(name: str) -> str:
    """The name of the page of a suite, method or paper."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name) + ".html"
