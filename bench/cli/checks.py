"""Checks of numbers that several commands take."""

from __future__ import annotations

import math

from bench.errors import UserError


def at_least(least: int, **options: int | None) -> None:
    for name, value in options.items():
        if value is not None and value < least:
            raise UserError(f"{_flag(name)} {value}: must be at least {least}")


def above_zero(**options: float | None) -> None:
    for name, value in options.items():
        if value is not None and not 0 < value < math.inf:
            raise UserError(f"{_flag(name)} {value:g}: must be a number greater than 0")


def gpu_share(share: float | None) -> None:
    if share is None:
        return
    if not 0 <= share < math.inf:
        raise UserError(f"--gpus-per-trial {share:g}: must be a number and not negative")
    if share > 1 and share != int(share):
        raise UserError(f"--gpus-per-trial {share:g}: above 1 only whole GPUs can be given")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
