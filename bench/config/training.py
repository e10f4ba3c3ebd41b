"""The section `training` of a suite: how clients train, the same for every method of a table."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import Field, model_validator

from bench.config.config_base import Count, Section, is_none, is_zero
from bench.config.schedules import ScheduleChoice


class Augmentation(Section):
    """Random changes of the training samples, drawn anew in every step; evaluation never sees them."""

    crop: int = Field(default=0, ge=0, strict=True, exclude_if=is_zero)
    """Black pixels around a picture before a part of the old size is cut out at random; 0: none."""
    flip: bool = Field(default=False, exclude_if=is_zero)
    """Whether every other picture, on average, is mirrored left to right."""
    brightness: float = Field(default=0.0, ge=0, le=1, exclude_if=is_zero)
    """b: a picture's brightness is multiplied by a factor from [1 − b, 1 + b]."""
    contrast: float = Field(default=0.0, ge=0, le=1, exclude_if=is_zero)
    """c: its distance from its mean grey by one from [1 − c, 1 + c]."""
    saturation: float = Field(default=0.0, ge=0, le=1, exclude_if=is_zero)
    """s: its distance from its own grey version by one from [1 − s, 1 + s]."""
    mixup: float = Field(default=0.0, ge=0, exclude_if=is_zero)
    """α of Beta(α, α), from which a step draws the share of the second sample in a mixture; 0: no mixing."""

    @property
    def jitters(self) -> bool:
        return max(self.brightness, self.contrast, self.saturation) > 0

    @property
    def needs_images(self) -> bool:
        return self.crop > 0 or self.flip or self.jitters

    @model_validator(mode="after")
    def _does_something(self) -> Augmentation:
        if not (self.needs_images or self.mixup):
            raise ValueError("augment changes nothing; give one of its keys a value, or leave it out")
        return self


class EarlyStop(Section):
    """When a run ends before its last round; its result is that of the round that is best on validation."""

    patience: Count = 5
    """Measurements in a row without a better one after which the run stops; `evaluation.every` sets how many
    rounds lie between two of them."""
    min_delta: float = Field(default=0.0, ge=0, lt=1)
    """By how much the accuracy, a share of 1, must rise to count as better."""


Precision: TypeAlias = Literal["fp32", "tf32", "bf16", "fp16"]


def _is_fp32(value: object) -> bool:
    return value == "fp32"


class Training(Section):
    """How clients train, the same for every method of a table."""

    rounds: Count
    """Communication rounds."""
    epochs: Count = 1
    """Passes over a client's samples per round."""
    steps: Count | None = Field(default=None, exclude_if=is_none)
    """Local steps per round; None: use `epochs`. Gives clients of unequal size the same work."""
    batch_size: Count
    """Samples per local step."""
    participation: float = Field(default=1.0, gt=0, le=1)
    """Share of the clients that take part in a round."""
    optimiser: dict[str, Any]
    """The clients' optimiser and its settings."""
    precision: Precision = Field(default="fp32", exclude_if=_is_fp32)
    """The numbers in which clients compute losses and gradients: float32; the same with matrix products in
    TF32 (`tf32`, CUDA alone); or, where `torch.autocast` finds it safe, bfloat16 (`bf16`) or float16 (`fp16`,
    CUDA alone, the loss scaled by 1024). Weights, updates and evaluation stay in float32."""
    schedule: ScheduleChoice = Field(default=None, exclude_if=is_none)
    """How the clients' learning rates change over the rounds; None: they are constant."""
    label_smoothing: float = Field(default=0.0, ge=0, lt=1, exclude_if=is_zero)
    """ε: the clients' cross-entropies take (1 − ε) · label + ε / classes as the target."""
    augment: Augmentation | None = Field(default=None, exclude_if=is_none)
    """Random changes of the training samples; None: none."""
    validation: float = Field(default=0.0, ge=0, lt=1)
    """Share of every client's training data that is held out for choosing hyperparameters."""
    early_stop: EarlyStop | None = Field(default=None, exclude_if=is_none)
    """When to stop before the last round, by the accuracy on `validation`; None: never."""

    @model_validator(mode="after")
    def _fits_together(self) -> Training:
        if self.schedule is not None:
            self.schedule.check(self.rounds)
        if self.early_stop is not None and self.validation == 0:
            raise ValueError(
                "early_stop needs held-out samples, since it must not look at the test sets; set "
                "training.validation, say to 0.1"
            )
        return self
