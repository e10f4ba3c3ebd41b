"""At its neutral hyperparameters a method is FedAvg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import ValidationError

from bench.contract.fixtures import refusals, tiny_problem
from bench.contract.method_under_test import MethodUnderTest, NotApplicableError
from bench.contract.nests import differing, some
from bench.contract.rule import Rule
from bench.contract.runs import run, served_model
from bench.engine.clients.loop import LoopHost
from methods.base import FedAlgorithm
from methods.fedavg import FedAvg
from methods.wrappers.base import Wrapper

ROUNDS = 2


def _neutral(subject: MethodUnderTest) -> Iterator[str]:
    neutral = getattr(subject.kind, "neutral", None)
    if neutral is None:
        yield (
            f"{subject.declared.__name__} does not say where it is FedAvg: set neutral = {{…}}, the "
            'hyperparameters, or neutral = "…", the reason why there are none'
        )
        return
    if isinstance(neutral, str):
        if not neutral.strip():
            yield "neutral is an empty text: give the reason why the method is FedAvg at no setting"
            return
        raise NotApplicableError(f"it {neutral}")
    if not isinstance(neutral, Mapping):
        yield f"neutral is a {type(neutral).__name__}: give a dictionary of hyperparameters, or a reason"
        return
    try:
        method = subject.fresh(**neutral)
    except ValidationError as error:
        first = error.errors()[0]
        yield f"neutral is refused: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        return
    refused = refusals(method)
    model = next((each for each in subject.models if each not in refused), None)
    if model is None:
        yield "at its neutral setting the method refuses every small model"
        return
    ends = [_model_after(each, model) for each in (method, _fedavg_like(method))]
    if ends[0] is None:
        yield "neutral names hyperparameters, but the server keeps no model to compare with FedAvg's"
    elif changed := differing(*ends):
        at = ", ".join(f"{key} = {value}" for key, value in neutral.items()) or "its defaults"
        hint = "" if "neutral" in vars(subject.kind) else "; neutral is inherited: declare it in the class"
        yield (
            f"at its neutral setting ({at}) the server's model is not FedAvg's bit for bit "
            f"({some(changed)}){hint}"
        )


def _fedavg_like(method: FedAlgorithm) -> FedAvg:
    """FedAvg with the hyperparameters that the method shares with it."""
    while isinstance(method, Wrapper):
        method = method.inner
    return FedAvg(**{key: getattr(method, key) for key in FedAvg.model_fields if hasattr(method, key)})


def _model_after(method: FedAlgorithm, model: str) -> object:
    problem = tiny_problem(method, model)
    return served_model(run(problem, LoopHost(problem), ROUNDS).server)


NEUTRAL = Rule(
    "neutral setting",
    "At the hyperparameters in `neutral` the method is FedAvg bit for bit, or it says why it never is.",
    "Neutral setting",
    _neutral,
)
