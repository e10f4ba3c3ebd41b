"""The end of a command's process: quick, but not before threads and exit handlers are done."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.kit.cli import environment

COMMAND = """
import atexit, sys, threading, time
from bench.cli import app, main

def command():
    {command}

app.main = command
main()
"""


def ended(command: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a process whose command this is."""
    script = COMMAND.format(command=command)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=environment()
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("command", "code"), [("pass", 0), ("sys.exit()", 0), ("sys.exit(3)", 3), ("raise SystemExit(0)", 0)]
)
def test_the_exit_code_is_the_commands(command: str, code: int) -> None:
    assert ended(command) == (code, "", "")


def test_a_message_is_printed() -> None:
    assert ended("sys.exit('no such thing')") == (1, "", "no such thing\n")


def test_an_unexpected_error_shows_its_traceback() -> None:
    code, out, err = ended("raise RuntimeError('odd')")
    assert (code, out) == (1, "")
    assert err.startswith("Traceback") and err.endswith("RuntimeError: odd\n")


def test_exit_handlers_run_and_output_is_written() -> None:
    assert ended("atexit.register(print, 'cleaned up'); print('done', end=' ')") == (
        0,
        "done cleaned up\n",
        "",
    )


def test_threads_come_to_their_end() -> None:
    late = "threading.Thread(target=lambda: (time.sleep(0.3), print('late'))).start()"
    assert ended(late) == (0, "late\n", "")


def test_objects_are_not_taken_apart() -> None:
    """Python itself would call the destructor of what a module holds."""
    kept = "sys.kept = type('Kept', (), {'__del__': lambda self: print('freed')})()"
    assert ended(kept) == (0, "", "")
