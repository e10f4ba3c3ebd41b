"""The rules of the contract, one module per subject."""

from bench.contract.rule import Rule
from bench.contract.rules.declaration import DECLARATION, HYPERPARAMETERS
from bench.contract.rules.divergence import DIVERGENCE
from bench.contract.rules.executors import EXECUTORS, HOSTS
from bench.contract.rules.neutral import NEUTRAL
from bench.contract.rules.padding import PADDING
from bench.contract.rules.privacy import PRIVACY
from bench.contract.rules.purity import IN_PLACE, REPEATABLE
from bench.contract.rules.randomness import RANDOMNESS
from bench.contract.rules.resume import RESUME
from bench.contract.rules.rounds import PARTICIPATION, ROUNDS, STARTS, TENSORS
from bench.contract.rules.sweeps import SWEEPS
from bench.contract.rules.traffic import TRAFFIC

RULES: tuple[Rule, ...] = (
    DECLARATION,
    HYPERPARAMETERS,
    ROUNDS,
    TENSORS,
    STARTS,
    PARTICIPATION,
    IN_PLACE,
    REPEATABLE,
    RANDOMNESS,
    PADDING,
    EXECUTORS,
    SWEEPS,
    HOSTS,
    RESUME,
    TRAFFIC,
    PRIVACY,
    DIVERGENCE,
    NEUTRAL,
)
"""In the order in which a report shows them: what others rest on comes first."""

__all__ = ["RULES"]
