"""Looking into states and messages: nests of named tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor


def flat(nest: Any, name: str = "") -> dict[str, Tensor]:
    """Dotted names to tensors; numbers become tensors, and anything else is an error of the method."""
    if isinstance(nest, Tensor):
        return {name: nest}
    if isinstance(nest, Mapping):
        return {
            key: leaf
            for part, item in nest.items()
            for key, leaf in flat(item, f"{name}.{part}" if name else str(part)).items()
        }
    return {name: torch.as_tensor(nest)}


def foreign(nest: Any, name: str = "") -> dict[str, str]:
    """Dotted name → type of whatever is neither a tensor nor a mapping of such."""
    if isinstance(nest, Mapping):
        return {
            key: kind
            for part, item in nest.items()
            for key, kind in foreign(item, f"{name}.{part}" if name else str(part)).items()
        }
    return {} if isinstance(nest, Tensor) else {name: type(nest).__name__}


def shapes(nest: Any) -> dict[str, tuple[int, ...]]:
    return {name: tuple(leaf.shape) for name, leaf in flat(nest).items()}


def differing(one: Any, other: Any) -> list[str]:
    """The names under which two nests do not hold the same bits; a NaN is the same as a NaN."""
    first, second = flat(one), flat(other)
    return [
        name
        for name in first | second
        if name not in first or name not in second or not _same_bits(first[name], second[name])
    ]


def gaps(one: Any, other: Any, tolerance: float) -> dict[str, float]:
    """Name → largest difference, where it exceeds the tolerance or cannot be told (infinity)."""
    first, second = flat(one), flat(other)
    missing = {name: float("inf") for name in first.keys() ^ second.keys()}
    found = {name: _gap(leaf, second[name]) for name, leaf in first.items() if name in second}
    return missing | {name: gap for name, gap in found.items() if not gap <= tolerance}


def is_all_finite(nest: Any) -> bool:
    return all(bool(torch.isfinite(leaf).all()) for leaf in flat(nest).values())


def each_tensor(nest: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """The nest with the function applied to every tensor."""
    if isinstance(nest, Tensor):
        return function(nest)
    if isinstance(nest, Mapping):
        return type(nest)({key: each_tensor(item, function) for key, item in nest.items()})  # type: ignore[call-arg]
    return nest


def copied(nest: Any) -> Any:
    return each_tensor(nest, torch.clone)


def noisy(nest: Any, draw: torch.Generator, size: float = 0.01) -> Any:
    """A copy whose floats are all larger, each by another amount up to `size`."""

    def add_noise(leaf: Tensor) -> Tensor:
        noise = size * torch.rand(leaf.shape, generator=draw)
        return leaf + noise.to(leaf.dtype) if leaf.is_floating_point() else leaf.clone()

    return each_tensor(nest, add_noise)


def shared_numbers(sent: Any, private: Any) -> list[tuple[str, str]]:
    """Pairs of names under which a message has memory or numbers of something private, however arranged."""
    return [
        (name, secret)
        for name, given in flat(sent).items()
        for secret, own in flat(private).items()
        if given.untyped_storage().data_ptr() == own.untyped_storage().data_ptr()
        or bool(torch.isin(_telling(given), _telling(own)).any())
    ]


def some(names: list[str]) -> str:
    """The first three names, for a sentence."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _same_bits(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.is_floating_point():
        return torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)
    return torch.equal(one, other)


def _gap(one: Tensor, other: Tensor) -> float:
    if one.shape != other.shape:
        return float("inf")
    return float((one.double() - other.double()).abs().max()) if one.numel() else 0.0


def _telling(leaf: Tensor) -> Tensor:
    """The numbers that give a tensor away; zeros, counts and flags may turn up anywhere."""
    values = leaf.detach().flatten().float()
    return values[values != values.round()]
