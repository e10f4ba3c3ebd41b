"""Ray that is started beside the driver's imports, and ends when the driver does."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from tests.kit.cli import environment, kill_session, session_members, wait_until
from tests.kit.kills import members

pytestmark = pytest.mark.xdist_group("ray")

USES_IT = """
from bench.scheduling import head
head.begin()
head.begin()  # as a command does that finds out twice that it needs Ray
from bench.scheduling.cluster import start_ray
start_ray()
print("ready", flush=True)
input()
"""
MAKES_A_MISTAKE = """
from bench.scheduling import head
head.begin()
print("ready", flush=True)
input()
"""


@contextmanager
def _driver(program: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield process
    finally:
        kill_session(process)


@pytest.mark.parametrize("end", ["by itself", "killed"])
def test_ray_is_started_once_in_a_process_of_its_own_and_ends_with_the_driver(end: str) -> None:
    with _driver(USES_IT) as driver:
        (raylet,) = members(driver.pid, "raylet")
        starter = psutil.Process(raylet).parent()
        assert starter is not None and "bench.scheduling.head" in starter.cmdline()
        if end == "killed":
            driver.kill()
            driver.wait()
        else:
            driver.communicate("\n", timeout=60)
            assert driver.returncode == 0
        assert wait_until(lambda: not session_members(driver.pid), 30), session_members(driver.pid)


@pytest.mark.parametrize("part", ["gcs_server", "raylet"])
def test_a_driver_that_ends_while_ray_starts_leaves_nothing_behind(part: str) -> None:
    with _driver(MAKES_A_MISTAKE) as driver:
        assert wait_until(lambda: bool(members(driver.pid, part)), 30)
        driver.communicate("\n", timeout=60)
        assert driver.returncode == 0
        assert wait_until(lambda: not session_members(driver.pid), 30), session_members(driver.pid)


def test_where_it_cannot_be_started_there_is_no_address() -> None:
    program = f"""
import sys
from bench.scheduling import head
print(head.address())
sys.executable = {shutil.which("false")!r}
head.begin()
print(head.address())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "None\nNone\n"


def test_a_process_that_has_imported_ray_starts_it_by_itself() -> None:
    program = "import ray\nfrom bench.scheduling import head\nhead.begin()\nprint(head.address())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"
