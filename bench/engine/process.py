"""How a process that trains uses its machine: its share of the threads, and memory that it keeps."""

from __future__ import annotations

import ctypes
import os
from mmap import PAGESIZE

import torch

from bench.startup.memory import c_library, keep_freed_memory, present_bytes, return_freed_memory

_HUGE_PAGES = 14
"""From mman.h of Linux."""
_HEAP = 512 * 2**20
"""What a step of stacked clients fits into many times over; an address range, no memory until it is used."""


def use_share(threads: int) -> None:
    """Call it once in every process that trains, before the first tensor."""
    torch.set_num_threads(threads)
    keep_freed_memory()
    if libc := c_library():
        _use_huge_pages(libc)


def keep_share(cpus: float) -> None:
    """Call it between two pieces of work: freed memory beyond the share of so many CPUs is given back.

    What is within it is kept. The next piece needs as much, and fetching a gigabyte from the system again
    takes a second or more on a virtual machine.
    """
    share = min(1.0, cpus / (os.cpu_count() or 1))
    if present_bytes() > share * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        return_freed_memory()


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
