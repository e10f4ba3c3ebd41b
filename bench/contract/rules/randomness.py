"""Random numbers come from the task and the batch, never from a global generator."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from bench.contract.method_under_test import ROUNDS, MethodUnderTest
from bench.contract.nests import differing, some
from bench.contract.rule import Rule
from bench.contract.runs import SOME, Course


def _randomness(subject: MethodUnderTest) -> Iterator[str]:
    first = subject.course.standing
    with _global_seeds(2):
        before = _global_states()
        course = Course.of(subject.problem_of_its_own(), ROUNDS, SOME)
        course.federation.evaluate(personal=True)
        after = _global_states()
    if changed := differing(first, course.standing):
        yield (
            f"results depend on a global random generator ({some(changed)}): draw random numbers with "
            "batch.uniform, batch.normal or task.generator"
        )
    elif touched := [name for name in before if before[name] != after[name]]:
        yield (
            f"the global random generator of {', '.join(touched)} is used: draw random numbers with "
            "batch.uniform, batch.normal or task.generator"
        )


@contextmanager
def _global_seeds(seed: int) -> Iterator[None]:
    """Other seeds of the global generators, whose states are put back afterwards."""
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])
        random.setstate(states[2])


def _global_states() -> dict[str, str]:
    return {
        "torch": str(torch.get_rng_state().tolist()),
        "numpy": str(
            [part.tolist() if isinstance(part, np.ndarray) else part for part in np.random.get_state()]
        ),
        "random": str(random.getstate()),
    }


RANDOMNESS = Rule(
    "randomness",
    "Random numbers come from the task or the batch; global generators are neither used nor changed.",
    "Randomness",
    _randomness,
)
