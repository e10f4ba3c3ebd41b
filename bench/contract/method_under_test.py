"""The method that is examined, with the problems and runs that several rules look at, made once."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.contract.fixtures import refusals, tiny_problem
from bench.contract.models import MODELS
from bench.contract.runs import SOME, Course
from bench.engine.problem import Problem
from methods.base import FedAlgorithm
from methods.wrappers.base import Wrapper

QUICK = {"server_steps": 3, "samples_per_class": 6, "layer_width": 8}
"""Hyperparameters that only make a method take longer, where it has them."""
ROUNDS = 3


class NotApplicableError(Exception):
    """Raised by a rule that does not concern this method; its text says why."""


class MethodUnderTest:
    """A class of methods, an instance to examine, and the first small model that it accepts."""

    def __init__(self, kind: type[FedAlgorithm], hyperparameters: Mapping[str, Any] | None = None) -> None:
        self.kind = kind
        quick = {key: value for key, value in QUICK.items() if key in kind.model_fields}
        self.hyperparameters = {**quick, **(hyperparameters or {})}
        self._problems: dict[Any, Problem] = {}

    @property
    def declared(self) -> type[FedAlgorithm]:
        """The class as somebody wrote it: of `ggeur+fedavg`, the wrapper."""
        return self.kind.__mro__[1] if issubclass(self.kind, Wrapper) else self.kind

    @property
    def name(self) -> str:
        """For sentences."""
        return str(getattr(self.kind, "label", self.kind.__name__))

    def fresh(self, **hyperparameters: Any) -> FedAlgorithm:
        """Another object of the same method."""
        return self.kind(**{**self.hyperparameters, **hyperparameters})

    @cached_property
    def method(self) -> FedAlgorithm:
        return self.fresh()

    @cached_property
    def refused(self) -> dict[str, str]:
        """Small model → the method's sentence, up to the first model that it accepts."""
        return refusals(self.method)

    @cached_property
    def model(self) -> str | None:
        """The first small model that the method accepts."""
        return next((model for model in MODELS if model not in self.refused), None)

    def problem(self, model: str | None = None, **how: Any) -> Problem:
        """A small problem, by default on the first model that the method accepts."""
        chosen = model or self.model
        if chosen is None:
            raise NotApplicableError("the method accepts none of the small models")
        key = (chosen, *sorted(how.items()))
        if key not in self._problems:
            self._problems[key] = tiny_problem(self.method, chosen, **how)
        return self._problems[key]

    def problem_of_its_own(self) -> Problem:
        """The usual problem, made again with another object of the method."""
        return tiny_problem(self.fresh(), self.model or self.models[0])

    @property
    def models(self) -> list[str]:
        """The small models, in the order in which they are tried."""
        return list(MODELS)

    @cached_property
    def course(self) -> Course:
        """Three rounds with two of the three clients each."""
        return Course.of(self.problem(), ROUNDS, SOME)

    def require_several_clients(self) -> None:
        """For rules about several clients: NotApplicableError where one holds all data."""
        if self.kind.pools_data:
            raise NotApplicableError("one client holds all data")


def raised(subject: MethodUnderTest, error: Exception) -> str:
    """What a method's code raised, and in which of its lines."""
    files = {
        str(getattr(sys.modules.get(each.__module__), "__file__", "")): each for each in subject.kind.__mro__
    }
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename in files or frame.filename.startswith("<ipython")]
    own = own or [frame for frame in frames if "/methods/" in frame.filename] or list(frames)
    first_line = next(iter(str(error).strip().splitlines()), "")
    text = f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__
    if not own:
        return text
    return f"{text} ({Path(own[-1].filename).name}, line {own[-1].lineno}, in {own[-1].name})"
