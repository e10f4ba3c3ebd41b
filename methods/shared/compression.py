"""Vectors in fewer bytes: their largest entries, or a few levels per entry packed into bits."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def largest(vector: Tensor, count: int) -> dict[str, Tensor]:
    """The entries of largest size as `values` (float32) and `indices` (int32)."""
    at = vector.abs().topk(count).indices
    return {"values": vector.gather(0, at), "indices": at.to(torch.int32)}


def from_largest(sent: dict[str, Tensor], size: int) -> Tensor:
    """The vector with these entries and zeros elsewhere."""
    blank = torch.zeros(size, dtype=sent["values"].dtype, device=sent["values"].device)
    return blank.scatter(0, sent["indices"].long(), sent["values"])


def quantised(vector: Tensor, levels: int, bucket: int, uniform: Tensor) -> dict[str, Tensor]:
    """Each bucket's length and, packed into bits, a level between −s and s per entry.

    An entry v of a bucket of length ‖b‖ gets ⌊s·|v|/‖b‖ + u⌋ with the sign of v, where u is uniform.
    """
    buckets = _in_buckets(vector, bucket)
    norms = buckets.norm(dim=1)
    scaled = buckets.abs() / norms.clamp(min=torch.finfo(norms.dtype).tiny)[:, None] * levels
    level = (scaled.flatten()[: len(vector)] + uniform).floor().clamp(max=levels)
    codes = (level * vector.sign()).to(torch.int64) + levels
    return {"norms": norms, "levels": packed(codes, bits_for(levels))}


def from_quantised(sent: dict[str, Tensor], size: int, levels: int, bucket: int) -> Tensor:
    """The vector of these levels and lengths."""
    codes = unpacked(sent["levels"], bits_for(levels), size) - levels
    norms = sent["norms"].repeat_interleave(bucket)[:size]
    return codes.to(norms.dtype) / levels * norms


def bits_for(levels: int) -> int:
    """Bits that tell −s, …, s apart."""
    return math.ceil(math.log2(2 * levels + 1))


def packed(codes: Tensor, bits: int) -> Tensor:
    """Whole numbers of so many bits each, one after the other, in bytes; the lowest bits come first."""
    each = (codes[:, None] >> torch.arange(bits, device=codes.device)) & 1
    flat = each.flatten()
    padded = F.pad(flat, (0, -len(flat) % 8)).view(-1, 8)
    return (padded << torch.arange(8, device=codes.device)).sum(dim=1).to(torch.uint8)


def unpacked(packed_codes: Tensor, bits: int, count: int) -> Tensor:
    """What `packed` packed."""
    device = packed_codes.device
    flat = ((packed_codes.long()[:, None] >> torch.arange(8, device=device)) & 1).flatten()
    each = flat[: count * bits].view(count, bits)
    return (each << torch.arange(bits, device=device)).sum(dim=1)


def _in_buckets(vector: Tensor, bucket: int) -> Tensor:
    return F.pad(vector, (0, -len(vector) % bucket)).view(-1, bucket)
