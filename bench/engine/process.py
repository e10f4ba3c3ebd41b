"""How a process that trains uses its machine: its share of the threads, and memory that it keeps."""

from __future__ import annotations

import ctypes
import sys
from mmap import PAGESIZE

import torch

# From malloc.h of glibc and mman.h of Linux.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_HUGE_PAGES = 14
_KEPT, _FROM_HEAP = 2**31 - 1, 2**30
_FROM_HEAP_AT_MOST = 2**25
"""Older releases of glibc refuse more."""

_HEAP = 512 * 2**20
"""What a step of stacked clients fits into many times over; an address range, no memory until it is used."""


def use_share(threads: int) -> None:
    """Call it once in every process that trains, before the first tensor."""
    torch.set_num_threads(threads)
    if sys.platform.startswith("linux"):
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):  # not in every C library
            _keep_freed_memory(libc)
            _use_huge_pages(libc)


def _keep_freed_memory(libc: ctypes.CDLL) -> None:
    """Let blocks of megabytes be used again instead of going back to the system after every step.

    A step allocates the same blocks as the one before; fetching them from the system costs a page fault
    every 4 KiB, a tenth of the time of a convolutional step and a quarter of that of stacked heads.
    """
    if not libc.mallopt(_MMAP_THRESHOLD, _FROM_HEAP):
        libc.mallopt(_MMAP_THRESHOLD, _FROM_HEAP_AT_MOST)
    libc.mallopt(_TRIM_THRESHOLD, _KEPT)


def _use_huge_pages(libc: ctypes.CDLL) -> None:
    """Ask for pages of 2 MiB in the part of the heap that every block of a step comes from.

    Stacked heads read and write megabytes in every operation, and a tenth of their time is spent on looking
    up where pages of 4 KiB stand. The block is freed at once: what counts is the range that the heap keeps.
    """
    libc.malloc.restype = ctypes.c_void_p
    block = libc.malloc(ctypes.c_size_t(_HEAP))
    if block:
        first_page = -(-block // PAGESIZE) * PAGESIZE
        libc.madvise(ctypes.c_void_p(first_page), ctypes.c_size_t(_HEAP - PAGESIZE), _HUGE_PAGES)
        libc.free(ctypes.c_void_p(block))
