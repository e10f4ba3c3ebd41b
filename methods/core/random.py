"""Random numbers that depend on a seed or key and a purpose alone, so that no draw can shift another.

`generator` serves what is drawn once per client and round. `uniform` and `normal` serve draws inside a
training step: they are functions of a key, the same for one client at a time and in a stack. A counter is
mixed with the key by the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom
Number Generators", OOPSLA 2014), in operations that work inside `vmap` and on every device.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

_GOLDEN = 0x9E3779B97F4A7C15 - 2**64
_MIX = ((30, 0xBF58476D1CE4E5B9 - 2**64), (27, 0x94D049BB133111EB - 2**64))
_STREAM = 2**40
"""Numbers that one stream of a key can give before it meets the next."""
_FRACTIONS = 2**24
"""As many steps from 0 to 1 as a float32 can tell apart."""


_STEP: ContextVar[int | Tensor | None] = ContextVar("step", default=None)


def derive(seed: int, stream: str, *keys: int) -> int:
    """A 63-bit seed that depends on all of its arguments and on nothing else."""
    text = f"{seed}/{stream}/{'/'.join(map(str, keys))}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def generator(seed: int, stream: str, *keys: int) -> torch.Generator:
    return torch.Generator().manual_seed(derive(seed, stream, *keys))


def uniform(key: int | Tensor, stream: int, shape: Sequence[int], device: torch.device) -> Tensor:
    """In [0, 1); number i of a shape does not depend on how many follow it."""
    return _fraction(_mixed(key, stream, shape, device), 40)


def normal(key: int | Tensor, stream: int, shape: Sequence[int], device: torch.device) -> Tensor:
    """Standard normal, by Box and Muller's formula."""
    bits = _mixed(key, stream, shape, device)
    radius = (-2 * (1 - _fraction(bits, 40)).log()).sqrt()
    return radius * (2 * math.pi * _fraction(bits, 16)).cos()


@contextmanager
def drawing_from(key: int | Tensor) -> Iterator[None]:
    """Layers of the model that draw random numbers take them from this key."""
    before = _STEP.set(key)
    try:
        yield
    finally:
        _STEP.reset(before)


def step_key() -> int | Tensor:
    """The key of the training step that is being computed."""
    key = _STEP.get()
    if key is None:
        raise RuntimeError(
            "dropout outside of a training step: train with task.train, and use the model elsewhere inside "
            "task.evaluation()"
        )
    return key


def _mixed(key: int | Tensor, stream: int, shape: Sequence[int], device: torch.device) -> Tensor:
    counter = torch.arange(math.prod(shape), device=device).view(*shape) + stream * _STREAM
    # The key is spread over all bits first: keys that follow each other must not overlap as counters do.
    bits = _finalised(torch.as_tensor(key, device=device) * _GOLDEN) + counter * _GOLDEN
    return _finalised(bits)


def _finalised(bits: Tensor) -> Tensor:
    for shift, factor in _MIX:
        bits = (bits ^ _shifted(bits, shift)) * factor
    return bits ^ _shifted(bits, 31)


def _shifted(bits: Tensor, by: int) -> Tensor:
    """To the right, with zeros coming in."""
    kept: int = 2 ** (64 - by) - 1
    return (bits >> by) & kept


def _fraction(bits: Tensor, shift: int) -> Tensor:
    return ((bits >> shift) & (_FRACTIONS - 1)).to(torch.get_default_dtype()) / _FRACTIONS
