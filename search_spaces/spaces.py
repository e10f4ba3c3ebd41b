"""What a search may try: for every method its default, its paper's grid and a wide range, side by side.

One file per method: `hyperparameters` are the method's own, `training` are keys of the suite's training
section, the same for every method so that all are tuned alike. A file is checked against the method itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from bench.config.cell import Training
from bench.errors import UserError, nearest
from bench.suite.methods import METHODS
from bench.suite.yaml_files import read_mapping
from bench.validation import validated, validated_union

FOLDER = Path(__file__).parent
KINDS = ("uniform", "log_uniform", "int", "choice")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Distribution(_Frozen):
    """`{log_uniform: [0.001, 1.0]}`: what to draw from, and its lower and upper end (or all the choices)."""

    kind: Literal["uniform", "log_uniform", "int", "choice"]
    values: tuple[Any, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _one_kind(cls, raw: Any) -> Any:
        if not (isinstance(raw, Mapping) and len(raw) == 1 and set(raw) <= set(KINDS)):
            raise ValueError(f"give exactly one of {', '.join(KINDS)} with a list")
        [(kind, values)] = raw.items()
        return {"kind": kind, "values": values}

    @model_validator(mode="after")
    def _is_a_range(self) -> Distribution:
        if self.kind == "choice":
            return self
        number = int if self.kind == "int" else (int, float)
        if len(self.values) != 2 or not all(_is_number(end, number) for end in self.values):
            raise ValueError(
                f"{self.kind} needs a lower and an upper {'integer' if number is int else 'number'}"
            )
        low, high = self.values
        if not low < high:
            raise ValueError("the lower end must be below the upper one")
        if self.kind == "log_uniform" and low <= 0:
            raise ValueError("the ends of log_uniform must be above 0")
        return self

    def covers(self, value: Any) -> bool:
        if self.kind == "choice":
            return value in self.values
        low, high = self.values
        return _is_number(value, (int, float)) and low <= value <= high


class Parameter(_Frozen):
    default: Any
    paper: tuple[Any, ...] = Field(min_length=1)
    """The values that the method's authors tried, or took without saying what they tried."""
    wide: Distribution
    partitions: tuple[str, ...] = ()
    """Those under which the parameter does anything; none named: all."""

    def matters(self, partition: str) -> bool:
        return not self.partitions or partition in self.partitions

    @model_validator(mode="after")
    def _default_can_be_found(self) -> Parameter:
        if not self.wide.covers(self.default):
            raise ValueError(f"the default {self.default} is outside of the wide distribution")
        return self

    def extremes(self) -> Iterator[Any]:
        """Every value that must be allowed if all of the space is."""
        yield from (self.default, *self.paper, *self.wide.values)


class Space(_Frozen):
    method: str
    hyperparameters: dict[str, Parameter] = {}
    training: dict[str, Parameter]
    """Dotted keys of the suite's training section."""


def load_space(method: str, folder: Path = FOLDER) -> Space:
    """The search space of a method, every value of which the method accepts.

    A method around another one, `outer+inner`, has the keys of both: the inner one's begin with `inner.`.
    """
    kind = METHODS.load(method)
    outer, plus, inner = method.partition("+")
    space = _read_space(outer, kind, folder)
    if not plus:
        return space
    nested = {f"inner.{key}": value for key, value in load_space(inner, folder).hyperparameters.items()}
    return space.model_copy(update={"method": method, "hyperparameters": space.hyperparameters | nested})


def _read_space(method: str, kind: type[BaseModel], folder: Path) -> Space:
    file = folder / f"{method}.yaml"
    where = f"search space {file.name}"
    beside = _beside(kind, file.name)
    if not file.is_file() and beside and beside.is_file():  # of a method that another package brings along
        file = beside
    if not file.is_file():
        place = beside or file.name
        raise UserError(f"method '{method}' has no search space; write {place}, as in CONTRIBUTING.md")
    raw = read_mapping(file, "the keys method, hyperparameters and training")
    space = validated(Space, raw, where)
    if space.method != method:
        raise UserError(f"{where} is for method '{space.method}': name the file after its method")
    for key, parameter in space.hyperparameters.items():
        _check_hyperparameter(kind, key, parameter, where)
    for key, parameter in space.training.items():
        for value in parameter.extremes():
            _check_training(key, value, f"{where}, training")
    return space


def _beside(kind: type[BaseModel], name: str) -> Path | None:
    """A file of this name beside the one that defines the class; None for a class from a notebook."""
    try:
        return Path(inspect.getfile(kind)).with_name(name)
    except (TypeError, OSError):
        return None


def _check_hyperparameter(kind: type[BaseModel], key: str, parameter: Parameter, where: str) -> None:
    if key not in kind.model_fields:
        raise UserError(f"{where}: unknown hyperparameter '{key}'; {nearest(key, kind.model_fields)}")
    own = kind.model_fields[key].default
    if parameter.default != own:
        raise UserError(f"{where}: the default of {key} is {own} in the method but {parameter.default} here")
    for value in parameter.extremes():
        validated(kind, {key: value}, where)


def _check_training(key: str, value: Any, where: str) -> None:
    from methods.core.optimisers import Optimiser

    section: dict[str, Any] = {
        "rounds": 1,
        "epochs": 1,
        "batch_size": 1,
        "optimiser": {"name": "sgd", "lr": 1.0},
    }
    *path, last = key.split(".")
    target = section
    for part in path:
        target = target.setdefault(part, {})
    target[last] = value
    validated(Training, section, where)
    validated_union(Optimiser, section["optimiser"], f"{where}: optimiser")


def _is_number(value: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
