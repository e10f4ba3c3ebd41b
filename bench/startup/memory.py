"""How much memory there is, and how a process keeps it for its next step instead of fetching it again."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from pathlib import Path

# From malloc.h of glibc.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENAS = -1, -3, -8
_KEPT, _FROM_HEAP = -1, 2**30
_FROM_HEAP_AT_MOST = 2**25
"""Older releases of glibc refuse more."""


def peak_bytes() -> int:
    """The most memory that this process has had so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def present_bytes() -> int:
    """The memory that this process has now, as far as the system tells."""
    status = Path("/proc/self/statm")
    if not status.is_file():
        return peak_bytes()
    return int(status.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def available_bytes() -> int:
    """What processes on this machine can still get."""
    info = Path("/proc/meminfo")
    if info.is_file():
        lines = dict(line.split(":", 1) for line in info.read_text(encoding="ascii").splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def c_library() -> ctypes.CDLL | None:
    """The C library if its memory can be set up as here: glibc on Linux."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "mallopt") else None


def keep_freed_memory(share_between_threads: bool = False) -> None:
    """Let blocks of megabytes be used again instead of going back to the system after every step.

    A step allocates the same blocks as the one before; fetching them from the system costs a page fault
    every 4 KiB, a tenth of the time of a convolutional step and a quarter of that of stacked heads. Threads
    that are started later would each get a heap that is too small for such blocks, unless they share one.
    """
    if libc := c_library():
        if not libc.mallopt(_MMAP_THRESHOLD, _FROM_HEAP):
            libc.mallopt(_MMAP_THRESHOLD, _FROM_HEAP_AT_MOST)
        libc.mallopt(_TRIM_THRESHOLD, _KEPT)
        if share_between_threads:
            libc.mallopt(_ARENAS, 1)


def return_freed_memory() -> None:
    """Give everything that is free back to the system, after work that needed far more than the next."""
    if (libc := c_library()) and hasattr(libc, "malloc_trim"):
        libc.malloc_trim(ctypes.c_size_t(0))
