"""Runs a command and ends its process without taking apart what was imported."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from collections.abc import Callable

OBJECTS = 10_000
"""New ones, after which Python looks for garbage among them; by itself it would after 700."""


def run_and_exit(command: Callable[[], object]) -> None:
    """Run a command and end the process with its exit code.

    Python would free half a million objects one by one after a command that used torch, Ray and MLflow. That
    takes two seconds, for memory that goes back to the system in any case. While they are made by imports, it
    would look through all of them ten times for garbage, which takes as long.
    """
    gc.set_threshold(OBJECTS, *gc.get_threshold()[1:])
    code: object = 0
    try:
        command()
    except SystemExit as end:
        code = end.code or 0
    if not isinstance(code, int):  # a message, which Python prints
        sys.exit(str(code))
    # What Python does first at the end of a process: wait for threads, and let everybody clean up.
    threading._shutdown()  # type: ignore[attr-defined]
    if ray := sys.modules.get("ray"):
        ray.shutdown()  # which waits for half a second if it is left to `atexit`
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # nobody reads it any more
        sys.exit(code)
    os._exit(code)
