"""The smallest difference that so many seeds can be expected to show."""

import math
import statistics
from collections.abc import Sequence
from functools import cache

from reports.numbers.statistics import SIGNIFICANCE

POWER = 0.8
LARGEST = 10.0
"""Above every noncentrality that three or more seeds need."""


def detectable_difference(differences: Sequence[float]) -> float:
    """λ · s / √n for n paired differences with the sample standard deviation s.

    A true difference of this size is found by the paired t-test at 5 % (two-sided, uncorrected) with a
    probability of 80 %: λ is the noncentrality at which the test with n − 1 degrees of freedom has this
    power.
    """
    count = len(differences)
    return noncentrality(count) * statistics.stdev(differences) / math.sqrt(count)


@cache
def noncentrality(seeds: int) -> float:
    """λ with P(T > t) = 80 %, where T is noncentral t with parameter λ and t the two-sided 5 % point."""
    from scipy.optimize import brentq
    from scipy.stats import nct, t

    freedom = seeds - 1
    edge = t.ppf(1 - SIGNIFICANCE / 2, freedom)
    return float(brentq(lambda shift: nct.sf(edge, freedom, shift) - POWER, 0.1, LARGEST))
