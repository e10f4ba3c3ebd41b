"""Notices that Ray has died under a run, for which Ray Tune would wait for ever."""

from __future__ import annotations

import _thread
import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import ray

from bench.errors import UserError

SECONDS = 3.0
"""Between two looks. Ray itself needs about fifteen until it counts a node as dead."""
AGAIN = 10.0
"""Until the main thread is interrupted once more: Ray and Tune have places that swallow an interruption."""


@contextmanager
def watched(every: float = SECONDS, again: float = AGAIN) -> Iterator[None]:
    """Ends what runs inside with a sentence once this machine's part of Ray is gone."""
    node = ray.get_runtime_context().get_node_id()
    over, died, here = threading.Event(), threading.Event(), threading.get_ident()

    def watch() -> None:
        while not over.wait(again if died.is_set() else every):
            if died.is_set() or not _alive(node):
                died.set()
                _interrupt(here)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    except KeyboardInterrupt:
        if not died.is_set():
            raise
        raise UserError(
            "Ray has died (killed, or out of memory); nothing is lost: run the same command again to resume"
        ) from None
    finally:
        over.set()
        thread.join()


def _interrupt(thread: int) -> None:
    """Have a thread raise KeyboardInterrupt, also in a process that a shell has told to ignore Ctrl-C.

    Shells do that to all that they start in the background, and there `interrupt_main` does nothing.
    """
    if callable(signal.getsignal(signal.SIGINT)):
        _thread.interrupt_main()
    else:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt)
        )


def _alive(node: str) -> bool:
    try:
        return any(each["Alive"] for each in ray.nodes() if each["NodeID"] == node)
    except Exception:  # whatever it is that a Ray without its head raises
        return False
