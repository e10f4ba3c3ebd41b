"""What a method asks of a model and what it sends, found out with the contract's small models and runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from bench.contract.fixtures import ADAM, MOMENTUM, PLAIN, SIZES, tiny_task
from bench.contract.method_under_test import MethodUnderTest
from bench.contract.models import MODELS
from bench.contract.runs import Course, Work
from methods.base import FedAlgorithm, Task
from methods.core.optimisers import Optimiser
from reports.docs import Examination, Traffic

OPTIMISERS: dict[str, Optimiser] = {"SGD with momentum": MOMENTUM, "Adam": ADAM}
ROUNDS = 2
"""In the second one, messages have what the first has made."""
INNER = "inner"
"""Under which a wrapper keeps the state of the method inside."""


def examined(kind: type[FedAlgorithm]) -> Examination:
    """Every small model is offered to the method, and two rounds are run on the first that it accepts."""
    subject = MethodUnderTest(kind)
    offers: dict[str, tuple[str, Optimiser]] = {tiny.about: (model, PLAIN) for model, tiny in MODELS.items()}
    if subject.model is not None:
        offers |= {about: (subject.model, optimiser) for about, optimiser in OPTIMISERS.items()}
    sentences = {about: _refusal(subject.method, *offer) for about, offer in offers.items()}
    work = Course.of(subject.problem(epochs=1), ROUNDS).work
    return Examination(
        accepted=tuple(tiny.about for tiny in MODELS.values() if not sentences[tiny.about]),
        refused={
            sentence: tuple(about for about, other in sentences.items() if other == sentence)
            for sentence in sentences.values()
            if sentence
        },
        before=_traffic(each for each in work if each.number == 0),
        rounds=_traffic(each for each in work if each.number > 0),
        private=_names(each.kept for each in work),
    )


def _refusal(method: FedAlgorithm, model: str, optimiser: Optimiser) -> str:
    """The method's sentence about why it does not run there; empty if it does."""
    try:
        method.check(_task(model, optimiser))
    except ValueError as refusal:
        return str(refusal)
    return ""


@cache
def _task(model: str, optimiser: Optimiser) -> Task:
    return tiny_task(model, optimiser, len(SIZES), seed=0)


def _traffic(work: Iterable[Work]) -> Traffic:
    messages = [(each.message, each.reply.content) for each in work]
    return Traffic(_names(down for down, _ in messages), _names(up for _, up in messages))


def _names(nests: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The names of the entries of all nests; a wrapper's part is taken apart."""
    found: dict[str, None] = {}
    for nest in nests:
        for name, entry in nest.items():
            found |= dict.fromkeys(_names([entry]) if name == INNER else [name])
    return tuple(found)
