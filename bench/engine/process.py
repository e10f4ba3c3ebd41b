"""How a process that trains uses its machine: its share of the threads, and memory that it keeps."""

from __future__ import annotations

import ctypes
import sys

import torch

# From malloc.h of glibc.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT, _FROM_HEAP = 2**31 - 1, 2**30


def use_share(threads: int) -> None:
    """Call it once in every process that trains, before the first tensor."""
    torch.set_num_threads(threads)
    _keep_freed_memory()


def _keep_freed_memory() -> None:
    """Let blocks of megabytes be used again instead of going back to the system after every step.

    A step allocates the same blocks as the one before; fetching them from the system costs a page fault
    every 4 KiB, a tenth of the time of a convolutional step and a quarter of that of stacked heads.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # not in every C library
        mallopt(_MMAP_THRESHOLD, _FROM_HEAP)
        mallopt(_TRIM_THRESHOLD, _KEPT)
