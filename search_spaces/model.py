"""A search space: for every parameter its default, what the paper prints and a wide range, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

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
    paper: tuple[Any, ...] = ()
    """The values that the method's authors tried, or took without saying what they tried; empty: unknown."""
    source: str = ""
    """Where these are printed, such as `Section 5.1` or `authors' code (Adam)`."""
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

    @model_validator(mode="after")
    def _paper_has_a_source(self) -> Parameter:
        if self.paper and not self.source:
            raise ValueError("paper has values but no source: say where they are printed")
        if self.source and not self.paper:
            raise ValueError("source is given but paper has no values: give them, or leave out the source")
        return self

    def extremes(self) -> Iterator[Any]:
        """Every value that must be allowed if all of the space is."""
        yield from (self.default, *self.paper, *self.wide.values)


class Space(_Frozen):
    method: str
    hyperparameters: dict[str, Parameter] = {}
    training: dict[str, Parameter]
    """Dotted keys of the suite's training section; empty where clients do not use the suite's optimiser,
    and for a wrapper, whose clients have the optimiser of the method inside."""


def _is_number(value: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
