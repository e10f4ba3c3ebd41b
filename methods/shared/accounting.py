"""ε of repeated Gaussian noise, by the package dp-accounting, which is imported when it is needed."""

from __future__ import annotations

import math
from functools import lru_cache
from importlib.util import find_spec
from typing import Literal, TypeAlias

Amplification: TypeAlias = Literal["none", "poisson", "without_replacement"]


def require_accountant() -> None:
    """Raise ValueError with one sentence where the package is missing."""
    if find_spec("dp_accounting") is None:
        raise ValueError(
            "needs the package dp-accounting to work out ε: install it with pip install "
            "'fl-bench-harness[privacy]'"
        )


@lru_cache(maxsize=4096)
def epsilon(
    noise_multiplier: float,
    releases: int,
    delta: float,
    amplification: Amplification = "none",
    sampled: int = 1,
    clients: int = 1,
) -> float:
    """ε at δ after so many noisy means over `sampled` of all `clients`.

    The noise multiplier z is the noise's standard deviation over the largest length S of one client's part
    of the sum. `none`: the sample is taken to be known, and one client's part may be replaced by zero, so
    the releases together are one Gaussian mechanism of multiplier z/√T; its ε is exact. `poisson`: Rényi
    accounting for samples in which every client is with probability sampled/clients. `without_replacement`:
    the same for samples of fixed size; one client is replaced by another, which moves the sum by up to 2S.
    """
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    relation = dp_accounting.NeighboringRelation
    if amplification == "none" or sampled >= clients:
        return float(dp_accounting.get_epsilon_gaussian(noise_multiplier / math.sqrt(releases), delta))
    if amplification == "poisson":
        accountant = RdpAccountant(neighboring_relation=relation.ADD_OR_REMOVE_ONE)
        event = dp_accounting.PoissonSampledDpEvent(
            sampled / clients, dp_accounting.GaussianDpEvent(noise_multiplier)
        )
    else:
        accountant = RdpAccountant(neighboring_relation=relation.REPLACE_ONE)
        event = dp_accounting.SampledWithoutReplacementDpEvent(
            clients, sampled, dp_accounting.GaussianDpEvent(noise_multiplier / 2)
        )
    accountant.compose(event, releases)
    return float(accountant.get_epsilon(delta))
