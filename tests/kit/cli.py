"""Starts `bench` the way a user does, and tiny suites to start it on."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import psutil
import yaml

BENCH = Path(sys.executable).with_name("bench")
COLUMNS = "160"

PRINTING_MODULES = """
import atexit, sys
from bench.cli.app import main

atexit.register(lambda: print(*sys.modules, file=sys.stderr))
main()
"""
"""`bench` as a program for `python -c` which ends by naming the modules it has loaded, on stderr."""

TINY: dict[str, Any] = {
    "suite": "tiny",
    "version": 1,
    "title": "Built-in digits, four clients",
    "dataset": {"name": "digits_mini"},
    "partition": {"name": "by_domain", "clients": 4, "samples": 20},
    "model": {"name": "mlp", "hidden": 16},
    "training": {
        "rounds": 4,
        "epochs": 1,
        "batch_size": 10,
        "optimiser": {"name": "sgd", "lr": 0.05},
    },
    "evaluation": {"every": 2},
    "methods": ["fedavg", "fedprox"],
    "seeds": 2,
}


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


def write_suite(folder: Path, **changes: Any) -> Path:
    """A suite file with other values at the top level than those of TINY."""
    file = folder / f"{changes.get('suite', TINY['suite'])}.yaml"
    file.write_text(yaml.safe_dump(TINY | changes, allow_unicode=True), encoding="utf-8")
    return file


def run_bench(*arguments: object, timeout: float = 480, **variables: str) -> Outcome:
    """`bench` in a process of its own; whatever it leaves behind is ended."""
    process = start_bench(*arguments, **variables)
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        kill_session(process)
    return Outcome(process.returncode, out, err)


def start_bench(*arguments: object, **variables: str) -> subprocess.Popen[str]:
    """`bench` running, as the leader of a session to which all that it starts belongs."""
    return subprocess.Popen(
        [BENCH, *map(str, arguments)],
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def environment(**variables: str) -> dict[str, str]:
    """The environment without what would change the outcome on a developer's machine."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("BENCH_DATA_ROOT", "PYTHONPATH", "RAY_ADDRESS")
    }
    return inherited | {"COLUMNS": COLUMNS} | variables


def kill_session(leader: subprocess.Popen[str]) -> None:
    """SIGKILL for a process and all that it started, as when a machine goes down."""
    while members := session_members(leader.pid):
        for member in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        time.sleep(0.05)
    leader.wait()


def session_members(leader: int) -> list[int]:
    """The living processes of a session."""
    members = []
    for process in psutil.process_iter(["status"]):
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(process.pid) == leader and process.info["status"] != psutil.STATUS_ZOMBIE:
                members.append(process.pid)
    return members


def call_bench(*arguments: object, **variables: str) -> Outcome:
    """`bench` inside this process, which has paid for the imports already."""
    from bench.cli.app import main

    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["bench", *map(str, arguments)]),
        mock.patch.dict(os.environ, environment(**variables), clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int)
    return Outcome(code, out.getvalue(), err.getvalue())


def wait_until(condition: Callable[[], bool], seconds: float, pause: float = 0.02) -> bool:
    """Whether the condition came true in time; between two looks there are so many seconds' pause."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def rounds_of(cell: Path) -> list[dict[str, Any]]:
    """The lines of rounds.jsonl, each with its time taken out."""
    lines = (cell / "rounds.jsonl").read_text(encoding="utf-8").splitlines()
    return [without(json.loads(line), "seconds") for line in lines]


def result_of(cell: Path) -> dict[str, Any]:
    """result.json with its times taken out, and the digests that depend on them."""
    return without(read(cell / "result.json"), "timing", "files", "seal")


def without(mapping: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    for key in keys:
        assert key in mapping
    return {key: value for key, value in mapping.items() if key not in keys}


def files_below(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file with its bytes and the time it was written."""
    return {
        str(file.relative_to(folder)): (file.read_bytes(), file.stat().st_mtime_ns)
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def assert_one_sentence(outcome: Outcome, *expected: str) -> None:
    assert outcome.code == 2, outcome
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1 and outcome.err.endswith("\n")
    for part in expected:
        assert part in outcome.err
