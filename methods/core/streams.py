"""Random streams: every draw comes from (seed, purpose, keys), so that no draw can shift another."""

import hashlib

import torch


def derive(seed: int, stream: str, *keys: int) -> int:
    """A 63-bit seed that depends on all of its arguments and on nothing else."""
    text = f"{seed}/{stream}/{'/'.join(map(str, keys))}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def generator(seed: int, stream: str, *keys: int) -> torch.Generator:
    return torch.Generator().manual_seed(derive(seed, stream, *keys))
