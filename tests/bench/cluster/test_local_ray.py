"""Ray that is started beside the driver's imports, and ends when the driver does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from tests.kit.cli import environment, kill_session, session_members, wait_until
from tests.kit.kills import members

pytestmark = pytest.mark.xdist_group("clusters")

USES_IT = """
from bench.cluster import local_ray
local_ray.begin()
local_ray.begin()  # as a command does that finds out twice that it needs Ray
from bench.cluster.nodes import start_ray
start_ray()
print("ready", flush=True)
input()
"""
WAITS_BEFORE_IT_USES_IT = """
from bench.cluster import local_ray
local_ray.begin()
assert local_ray.address()
print("ready", flush=True)
input()
from bench.cluster.nodes import start_ray
start_ray()
print("ready", flush=True)
"""
MAKES_A_MISTAKE = """
from bench.cluster import local_ray
local_ray.begin()
print("ready", flush=True)
input()
"""


@contextmanager
def _driver(program: str, ready: bool = True) -> Iterator[subprocess.Popen[str]]:
    """A process that runs this program; `ready`: once it says so."""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert not ready or process.stdout.readline() == "ready\n"
        yield process
    finally:
        kill_session(process)


@pytest.mark.parametrize("end", ["by itself", "killed"])
def test_ray_is_started_once_in_a_process_of_its_own_and_ends_with_the_driver(end: str) -> None:
    with _driver(USES_IT) as driver:
        (raylet,) = members(driver.pid, "raylet")
        starter = psutil.Process(raylet).parent()
        assert starter is not None and "bench.cluster.local_ray" in starter.cmdline()
        if end == "killed":
            driver.kill()
            driver.wait()
        else:
            driver.communicate("\n", timeout=60)
            assert driver.returncode == 0
        assert wait_until(lambda: not session_members(driver.pid), 30), session_members(driver.pid)


@pytest.mark.long
@pytest.mark.parametrize("part", ["gcs_server", "raylet"])
@pytest.mark.parametrize("when", ["while it starts", "when it has started"])
def test_a_ray_that_died_before_it_was_needed_is_started_again(part: str, when: str) -> None:
    program = USES_IT if when == "while it starts" else WAITS_BEFORE_IT_USES_IT
    with _driver(program, ready=when == "when it has started") as driver:
        assert wait_until(lambda: bool(members(driver.pid, part)), 30)
        (victim,) = members(driver.pid, part)
        os.kill(victim, signal.SIGKILL)
        out, _ = driver.communicate("\n\n", timeout=120)
        assert (driver.returncode, out.splitlines()[-1]) == (0, "ready")


def test_a_driver_that_ends_while_ray_starts_leaves_nothing_behind() -> None:
    with _driver(MAKES_A_MISTAKE) as driver:
        assert wait_until(lambda: bool(members(driver.pid, "raylet")), 30)
        driver.communicate("\n", timeout=60)
        assert driver.returncode == 0
        assert wait_until(lambda: not session_members(driver.pid), 30), session_members(driver.pid)


def test_where_it_cannot_be_started_there_is_no_address() -> None:
    program = f"""
import sys
from bench.cluster import local_ray
print(local_ray.address())
sys.executable = {shutil.which("false")!r}
local_ray.begin()
print(local_ray.address())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "None\nNone\n"


def test_a_process_that_has_imported_ray_starts_it_by_itself() -> None:
    program = "import ray\nfrom bench.cluster import local_ray\nlocal_ray.begin()\nprint(local_ray.address())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"
