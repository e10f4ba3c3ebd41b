"""Learning-rate schedules: the factor of the clients' learning rates in every round."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, field_validator

from bench.config.config_base import Count, Section, is_zero


class Cosine(Section):
    """From the full rate down to a share of it along half a cosine, after a linear warm-up if asked for.

    With W warm-up rounds, round t ≤ W has the factor t / (W + 1); then, with e = t − 1 − W of T − W rounds,
    f + (1 − f) · (1 + cos(π e / (T − W))) / 2: PyTorch's LinearLR and CosineAnnealingLR, stepped per round.
    """

    name: Literal["cosine"] = "cosine"
    warmup: int = Field(default=0, ge=0, strict=True, exclude_if=is_zero)
    """W, rounds at the start in which the rate rises."""
    final: float = Field(default=0.0, ge=0, le=1, exclude_if=is_zero)
    """f, the factor that the rate falls towards."""

    def at(self, number: int, rounds: int) -> float:
        """The factor in round `number` of so many, counted from 1."""
        if number <= self.warmup:
            return number / (self.warmup + 1)
        share = (number - 1 - self.warmup) / (rounds - self.warmup)
        return self.final + (1 - self.final) * (1 + math.cos(math.pi * share)) / 2

    def check(self, rounds: int) -> None:
        """ValueError if this makes no sense for so many rounds."""
        if self.warmup >= rounds:
            raise ValueError(
                f"schedule.warmup = {self.warmup} leaves no round of the {rounds} to train at the full rate; "
                "give fewer"
            )


class Step(Section):
    """The rate is multiplied by `factor` after each of these rounds, as PyTorch's MultiStepLR does it."""

    name: Literal["step"] = "step"
    milestones: tuple[Count, ...] = Field(min_length=1)
    """The last round of every stage but the last one."""
    factor: float = Field(default=0.1, gt=0, le=1)
    """The factor of the rate from one stage to the next."""

    @field_validator("milestones")
    @classmethod
    def _rise(cls, milestones: tuple[int, ...]) -> tuple[int, ...]:
        if list(milestones) != sorted(set(milestones)):
            raise ValueError("give rounds in rising order, each once")
        return milestones

    def at(self, number: int, rounds: int) -> float:
        """The factor in round `number`, counted from 1."""
        return float(self.factor ** sum(milestone < number for milestone in self.milestones))

    def check(self, rounds: int) -> None:
        """Milestones after the last round have no effect, which is fine for a shortened run."""


def _given(value: Any) -> Any:
    """A name alone stands for a schedule with its defaults; `constant` is what there is without one."""
    if isinstance(value, str):
        value = {"name": value}
    return None if value == {"name": "constant"} else value


Schedule: TypeAlias = Annotated[Cosine | Step, Field(discriminator="name")]
ScheduleChoice: TypeAlias = Annotated[Schedule | None, BeforeValidator(_given)]
