"""The numbers of a table's row, by seed and in percent, taken from the records of its cells."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.records import CellRecord, Run

BOUNDS = ("local", "central")

BySeed = Mapping[int, float]


@dataclass(frozen=True)
class Entry:
    """The cells of one row (a method under one label) in one variant: a cell a seed."""

    method: str
    label: str
    domains: tuple[str, ...]
    cells: tuple[CellRecord, ...]

    @property
    def as_published(self) -> bool:
        """Whether a cell follows a paper's code to the letter, best round on test included."""
        return any(
            cell.config is not None and cell.config["method"]["hyperparameters"].get("as_published")
            for cell in self.cells
        )

    @property
    def ranked(self) -> bool:
        """Whether the row takes part in the contest for best and second."""
        return self.method not in BOUNDS and not self.as_published

    @property
    def personalised(self) -> bool:
        """Whether a result has an accuracy of the clients' own models, finite or not."""
        return any(
            cell.result is not None and cell.result["final"].get("personal") is not None
            for cell in self.cells
        )

    def on_domain(self, domain: str) -> BySeed:
        """Accuracy on one domain."""
        values = {cell.seed: cell.accuracy(domain) for cell in self.cells}
        return {seed: 100 * value for seed, value in values.items() if value is not None}

    def averages(self) -> BySeed:
        """Unweighted mean over the domains, for seeds that have them all."""
        return {seed: statistics.fmean(values) for seed, values in self._complete().items()}

    def spreads(self) -> BySeed:
        """Standard deviation over the domains (ddof 0), for seeds that have them all."""
        return {seed: statistics.pstdev(values) for seed, values in self._complete().items()}

    def own(self) -> BySeed:
        """Mean over clients of own-test accuracy."""
        return {cell.seed: 100 * cell.personal for cell in self.cells if cell.personal is not None}

    def scores(self) -> dict[tuple[int, str], float]:
        """Accuracy by (seed, domain), for seeds that have all domains."""
        return {
            (seed, domain): value
            for seed, values in self._complete().items()
            for domain, value in zip(self.domains, values, strict=True)
        }

    def _complete(self) -> dict[int, list[float]]:
        by_domain = [self.on_domain(domain) for domain in self.domains]
        seeds = [cell.seed for cell in self.cells if all(cell.seed in values for values in by_domain)]
        return {seed: [values[seed] for values in by_domain] for seed in seeds}


def entries(run: Run, variant: str) -> list[Entry]:
    """The rows of one variant in the plan's order."""
    domains = domains_of(run, variant)
    grouped: dict[tuple[str, str], list[CellRecord]] = {}
    for cell in run.cells:
        if cell.variant == variant:
            grouped.setdefault((cell.method, cell.label), []).append(cell)
    return [Entry(method, label, domains, tuple(cells)) for (method, label), cells in grouped.items()]


def domains_of(run: Run, variant: str) -> tuple[str, ...]:
    """The plan's domains; of a run over several datasets, those that this variant's results know."""
    if len(run.variants) == 1:
        return run.domains
    known = {
        domain
        for cell in run.cells
        if cell.variant == variant and cell.result is not None
        for domain in cell.result["final"]["test"]
    }
    return tuple(domain for domain in run.domains if domain in known) or run.domains


def by_bounds(rows: Sequence[Entry]) -> list[list[Entry]]:
    """Rows in sections: the lower bound, the federated methods, the upper bound; empty ones left out."""
    lower, upper = BOUNDS
    sections = [
        [row for row in rows if row.method == lower],
        [row for row in rows if row.method not in BOUNDS],
        [row for row in rows if row.method == upper],
    ]
    return [section for section in sections if section]
