"""The accuracies of a table's rows by seed, in percent, from the records of their cells."""

import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.records.reader import CellRecord, Run
from bench.records.schema import DEFAULT_ROW, SHARED_ROW, Result, average, finite, validations
from reports.numbers.history import average_by_round
from reports.numbers.swept import is_off_default

BOUNDS = ("local", "central")
REFERENCE = "fedavg"
UNVERIFIED = ("failed", "unchecked")
"""What the record of a cell says if its method has not passed `bench check`."""

BySeed = Mapping[int, float]

RowKey = tuple[str, str]
"""Method and label, which identify a row of a table and a line of a figure."""


@dataclass(frozen=True)
class RowScores:
    """One row of a table (a method under one label) in one variant: one cell per seed."""

    method: str
    label: str
    domains: tuple[str, ...]
    cells: tuple[CellRecord, ...]
    default: bool = False
    """Whether the row has default hyperparameters beside a tuned row of the same method."""

    @property
    def key(self) -> RowKey:
        return self.method, self.label

    @property
    def hyperparameters(self) -> Mapping[str, Any]:
        """The hyperparameters of the row; empty until one of its cells has begun."""
        return next((cell.hyperparameters for cell in self.cells if cell.config is not None), {})

    @property
    def as_published(self) -> bool:
        """Whether a cell follows a paper's code exactly, including selection of the best round on test."""
        return any(cell.as_published for cell in self.cells)

    @property
    def unverified(self) -> bool:
        """Whether a cell was computed with a method that has not passed `bench check`."""
        return any(cell.provenance.contract in UNVERIFIED for cell in self.cells)

    @property
    def ranked(self) -> bool:
        """Whether the row is a candidate for best and second best."""
        others = self.as_published or self.default or self.off_default or self.label.endswith(SHARED_ROW)
        return self.method not in BOUNDS and not others

    @property
    def off_default(self) -> bool:
        """Whether a sweep gave the row another value than its default; to choose one by test is no rule."""
        return any(is_off_default(cell) for cell in self.cells)

    @property
    def personalised(self) -> bool:
        """Whether a result has an accuracy of the clients' own models, finite or not."""
        return any(cell.result is not None and cell.result.final.personal is not None for cell in self.cells)

    def on_domain(self, domain: str) -> BySeed:
        """Accuracy on one domain."""
        values = {cell.seed: cell.accuracy(domain) for cell in self.cells}
        return {seed: 100 * value for seed, value in values.items() if value is not None}

    def averages(self) -> BySeed:
        """AVG, for seeds with results on every domain."""
        return {seed: average(values) for seed, values in self._complete().items()}

    def spreads(self) -> BySeed:
        """Standard deviation over the domains (ddof 0), for seeds with results on every domain."""
        return {seed: statistics.pstdev(values.values()) for seed, values in self._complete().items()}

    def worst(self) -> BySeed:
        """Accuracy on the worst domain, for seeds with results on every domain."""
        return {seed: min(values.values()) for seed, values in self._complete().items()}

    def final(self) -> BySeed:
        """AVG of the last round, also for rows whose code selects another one."""
        found = {}
        for cell in self.cells:
            test: Mapping[str, float | None] = (cell.result.final.test if cell.result else None) or {}
            if cell.result and cell.result.selected:  # then the final scores are those of another round
                test = cell.rounds[-1].test or {}
            values = {name: value for name in self.domains if (value := finite(test.get(name))) is not None}
            if len(values) == len(self.domains):
                found[cell.seed] = 100 * average(values)
        return found

    def chosen_rounds(self) -> dict[int, tuple[int, int]]:
        """Seed → the round that early stopping chose and the last one; empty without early stopping."""
        ended = {cell.seed: cell.result for cell in self.cells if cell.result}
        return {seed: (each.selected.round, each.rounds) for seed, each in ended.items() if each.selected}

    def best_on_validation(self) -> BySeed:
        """AVG of the evaluated round that is best on held-out data, the earliest of several."""
        found = {}
        for cell in self.cells:
            judged = validations(cell.rounds) if cell.result else {}
            averages = average_by_round(cell, self.domains)
            if at := [number for number in judged if number in averages]:
                found[cell.seed] = averages[max(at, key=lambda number: (judged[number], -number))]
        return found

    def last_five(self) -> BySeed:
        """Mean AVG of the last five evaluated rounds."""
        return self._from_results(lambda result: result.last5_avg, 100)

    def oracle(self) -> BySeed:
        """AVG of the best round on test."""
        return self._from_results(lambda result: result.oracle and result.oracle.avg, 100)

    def seconds(self) -> BySeed:
        """Wall-clock time of the rounds."""
        return self._from_results(lambda result: result.timing.wall_seconds, 1)

    def own(self) -> BySeed:
        """Mean over clients of own-test accuracy."""
        return {cell.seed: 100 * cell.personal for cell in self.cells if cell.personal is not None}

    def epsilons(self) -> BySeed:
        """ε after the last round of finished cells, of methods with differential privacy."""
        last = {cell.seed: cell.rounds[-1].metrics for cell in self.cells if cell.result and cell.rounds}
        values = {seed: finite(metrics.get("epsilon")) for seed, metrics in last.items()}
        return {seed: value for seed, value in values.items() if value is not None}

    def _from_results(self, get: Callable[[Result], object], scale: float) -> BySeed:
        values = {cell.seed: finite(get(cell.result)) for cell in self.cells if cell.result}
        return {seed: scale * value for seed, value in values.items() if value is not None}

    def _complete(self) -> dict[int, dict[str, float]]:
        """Seed → domain → accuracy, for seeds with results on every domain."""
        found = {domain: self.on_domain(domain) for domain in self.domains}
        seeds = [cell.seed for cell in self.cells if all(cell.seed in by_seed for by_seed in found.values())]
        return {seed: {domain: by_seed[seed] for domain, by_seed in found.items()} for seed in seeds}


def rows_of(run: Run, variant: str) -> list[RowScores]:
    """The rows of one variant in the plan's order; a row of default hyperparameters follows its tuned row."""
    domains = domains_of(run, variant)
    grouped: dict[tuple[str, str], list[CellRecord]] = {}
    for cell in run.cells:
        if cell.variant == variant:
            grouped.setdefault((cell.method, cell.label), []).append(cell)
    places = {key: place for place, key in enumerate(grouped)}
    ordered = sorted(grouped, key=lambda key: (places[_tuned(key, grouped)], _tuned(key, grouped) != key))
    return [
        RowScores(*key, domains, tuple(grouped[key]), default=_tuned(key, grouped) != key) for key in ordered
    ]


def _tuned(key: RowKey, rows: Collection[RowKey]) -> RowKey:
    """The tuned row that a row of default hyperparameters stands beside; the row itself if there is none."""
    method, label = key
    tuned = (method, label.removesuffix(DEFAULT_ROW))
    return tuned if tuned in rows else key


def domains_of(run: Run, variant: str) -> tuple[str, ...]:
    """The domains of the plan; with several datasets, those that occur in this variant's results."""
    if len(run.variants) == 1:
        return run.domains
    known = {
        domain
        for cell in run.cells
        if cell.variant == variant and cell.result is not None
        for domain in cell.result.final.test or ()
    }
    return tuple(domain for domain in run.domains if domain in known) or run.domains


def references_of(rows: Sequence[RowScores]) -> list[RowScores]:
    """The rows that the others could be compared with; more than one if runs were mixed."""
    return [row for row in rows if row.method == REFERENCE and row.ranked]


def reference_of(rows: Sequence[RowScores]) -> RowScores | None:
    """The row that the others are compared with."""
    return next(iter(references_of(rows)), None)


def by_bounds(rows: Sequence[RowScores]) -> list[list[RowScores]]:
    """Rows in sections: the lower bound, the federated methods, the upper bound; empty ones left out."""
    lower, upper = BOUNDS
    sections = [
        [row for row in rows if row.method == lower],
        [row for row in rows if row.method not in BOUNDS],
        [row for row in rows if row.method == upper],
    ]
    return [section for section in sections if section]
