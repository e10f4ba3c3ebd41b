"""How often a table shows a star although no method differs from FedAvg: the test over seeds and the old one.

    python scripts/simulate_stars.py [--tables 2000] [--methods 6] [--seeds 5] [--domains 4]

Every simulated table has methods of equal true accuracy. The accuracy of a cell on a domain is the level
of the domain plus three kinds of luck: of the seed, which all methods share (the partition); of the method at
the seed, which all its domains share (initialisation, order of batches); and of the single domain. Stars come
from the code that makes the stars of the tables; beside them stand the stars of a paired t-test over
seeds × domains, which takes the domains of a seed for independent replications. With Holm's correction, at
most 5 % of the tables may have any star.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import ttest_rel

from reports.numbers.statistics import SIGNIFICANCE, against, holm

OF_SEED, OF_METHOD, OF_DOMAIN = 1.0, 1.0, 0.5
"""Standard deviations of the three kinds of luck, in points."""

Table = Mapping[str, np.ndarray]
"""Method → accuracies, seeds × domains."""


@dataclass(frozen=True)
class Shape:
    methods: int = 6
    seeds: int = 5
    domains: int = 4


@dataclass(frozen=True)
class Rates:
    """Shares of tables with at least one star."""

    over_seeds: float
    over_seeds_and_domains: float


def simulate(tables: int, shape: Shape, seed: int = 0) -> Rates:
    """The rates over many tables without any true difference."""
    draw = np.random.default_rng(seed)
    found = [_starred(_table(draw, shape)) for _ in range(tables)]
    ours, old = np.mean(found, axis=0)
    return Rates(float(ours), float(old))


def _table(draw: np.random.Generator, shape: Shape) -> Table:
    levels = draw.uniform(40, 90, size=(1, shape.domains))
    of_seed = OF_SEED * draw.normal(size=(shape.seeds, 1))
    return {
        f"method {place}": levels
        + of_seed
        + OF_METHOD * draw.normal(size=(shape.seeds, 1))
        + OF_DOMAIN * draw.normal(size=(shape.seeds, shape.domains))
        for place in range(shape.methods)
    }


def _starred(table: Table) -> tuple[bool, bool]:
    """Whether the table has any star by the test over seeds, and by the one over seeds × domains."""
    reference, *others = table.values()
    averages = [dict(enumerate(accuracies.mean(axis=1))) for accuracies in (reference, *others)]
    ours = any(found is not None and found.significant for found in against(averages[0], averages[1:]))
    p_values = [float(ttest_rel(other.ravel(), reference.ravel()).pvalue) for other in others]
    return ours, min(holm(p_values)) < SIGNIFICANCE


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=2000)
    for name, default in vars(Shape()).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    shape = Shape(options.methods, options.seeds, options.domains)
    rates = simulate(options.tables, shape)
    print(f"{options.tables} tables without a difference, {shape}: tables with any star")
    print(f"  paired t-test over the seeds' AVG:   {100 * rates.over_seeds:.1f} %")
    print(f"  paired t-test over seeds × domains:  {100 * rates.over_seeds_and_domains:.1f} %")


if __name__ == "__main__":
    main()
