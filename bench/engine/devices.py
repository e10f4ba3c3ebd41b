"""Where a cell computes: the one place that chooses a device, and how tensors get there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from bench.config.training import Precision
from bench.errors import UserError


def gpus_per_trial(asked: float | None, cards: float) -> float:
    """The share of GPUs that a trial gets: what was asked for, or a whole one where there are any."""
    return asked if asked is not None else float(cards >= 1)


def device_type(gpus: float, has_cuda: bool, has_mps: bool) -> str:
    """CUDA for those who were given a share of it, Apple's GPU where there is one, else the CPU."""
    if gpus > 0 and has_cuda:
        return "cuda"
    return "mps" if has_mps else "cpu"


def best_device(gpus: float) -> torch.device:
    """The device of a process with this share of GPUs."""
    return torch.device(device_type(gpus, torch.cuda.is_available(), torch.backends.mps.is_available()))


def device_here(asked: float | None) -> str:
    """The type of device that the trials of this machine will have, if they ask for this share of GPUs."""
    return best_device(gpus_per_trial(asked, torch.cuda.device_count())).type


def device_in_cluster(gpus: float) -> str:
    """The same for trials in a cluster, which are put where there are GPUs if they have a share of them."""
    return device_type(gpus, has_cuda=True, has_mps=torch.backends.mps.is_available())


_NEEDS_CUDA = ("tf32", "fp16")
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def check_precision(precision: Precision, device: str) -> None:
    """A UserError where a device of this type does not compute in this precision."""
    if precision in _NEEDS_CUDA and device != "cuda":
        raise UserError(
            f"training.precision: {precision} needs CUDA, but the cell computes on the device "
            f"'{device}'; use bf16 or fp32, or give trials a share of a GPU with --gpus-per-trial"
        )


def use_precision(precision: Precision, device: torch.device) -> None:
    """Let this process compute matrix products in TF32, or not; convolutions follow PyTorch's default."""
    check_precision(precision, device.type)
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"


def autocast_dtype(precision: Precision) -> torch.dtype | None:
    """What losses and gradients are computed in; None: float32."""
    return _DTYPES.get(precision)


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on the device; to CUDA from pinned memory, so that nobody waits for the copy."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def sent_together(parts: Mapping[str, Tensor | None], device: torch.device) -> dict[str, Tensor | None]:
    """Small tensors of whole numbers with one first dimension, copied to the device in one piece.

    Masks of zeros and ones are whole numbers too. What is None stays None.
    """
    if device.type == "cpu":
        return dict(parts)
    there = {name: part for name, part in parts.items() if part is not None}
    rows = [part.reshape(len(part), -1).long() for part in there.values()]
    block = sent(torch.cat(rows, dim=1), device)
    pieces = block.split([row.shape[1] for row in rows], dim=1)
    found = {
        name: piece.reshape(part.shape).to(part.dtype)
        for (name, part), piece in zip(there.items(), pieces, strict=True)
    }
    return {name: found.get(name) for name in parts}


def sent_orders(orders: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Visiting orders of several epochs, copied to the device in one piece."""
    if device.type == "cpu" or not orders:
        return list(orders)
    return list(sent(torch.cat(list(orders)), device).split([len(order) for order in orders]))
