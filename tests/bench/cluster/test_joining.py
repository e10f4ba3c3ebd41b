"""Clusters are joined; Ray that a program started for itself is not, and neither is what is no Ray."""

from __future__ import annotations

import json
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.cluster import joining
from bench.errors import UserError
from tests.kit.cli import environment, kill_session

pytestmark = pytest.mark.xdist_group("clusters")

RAY = Path(sys.executable).with_name("ray")
PRIVATE = """
import ray
from bench.errors import UserError
from bench.cluster.nodes import start_ray

start_ray(cpus=1)
print(ray.get_runtime_context().gcs_address, flush=True)
input()
try:
    print(start_ray("auto"), flush=True)
except UserError as error:
    print(error, flush=True)
input()
"""
SESSION = """
import json, os, subprocess, sys
from bench.errors import UserError
from bench.cluster.joining import shared_cluster
from tests.kit.cli import wait_until


def outcome(address):
    try:
        return shared_cluster(address)
    except UserError as error:
        return str(error)


found = {"nothing": outcome("auto")}
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
private = subprocess.Popen([sys.executable, "-c", PRIVATE], **pipes)
found["private address"] = private.stdout.readline().strip()
found["private"] = outcome("auto")
os.environ["RAY_AUTH_MODE"] = "token"
found["by address"] = outcome(found["private address"])
start = "start --head --port 0 --num-cpus 1 --include-dashboard false --block"
head = subprocess.Popen([RAY, *start.split()])
wait_until(lambda: "found only" not in outcome("auto"), 60, 0.5)
found["both"] = outcome("auto")
print("", file=private.stdin, flush=True)
found["own"] = private.stdout.readline().strip()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found() -> Iterator[dict[str, str]]:
    """What addresses stand for, where a private Ray and then a cluster come up.

    In a namespace for processes if the user may make one: "auto" sees all Rays on a machine.
    """
    program = SESSION.replace("PRIVATE", repr(PRIVATE)).replace("RAY,", f"{str(RAY)!r},")
    command = [sys.executable, "-c", program]
    apart = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*apart, "true"], capture_output=True).returncode == 0:
        command = [*apart, *command]
    process = subprocess.Popen(
        command,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        lines = process.stdout.readlines()
    finally:
        kill_session(process)
    yield json.loads(lines[-1])


def test_auto_says_that_there_is_no_cluster(found: dict[str, str]) -> None:
    assert found["nothing"].startswith("--address auto: there is no Ray cluster on this machine; start one")


def test_auto_refuses_the_ray_of_another_program(found: dict[str, str]) -> None:
    assert f"started for themselves ({found['private address']}); start one" in found["private"]


def test_an_address_refuses_the_ray_of_another_program(found: dict[str, str]) -> None:
    expected = f"the Ray at '{found['private address']}' was started by a program for itself and ends with it"
    assert found["by address"].startswith(expected)


def test_auto_finds_a_cluster_beside_a_private_ray(found: dict[str, str]) -> None:
    host, _, port = found["both"].rpartition(":")
    assert port.isdecimal() and host and found["both"] != found["private address"]


def test_a_program_with_a_ray_of_its_own_joins_nothing_in_silence(found: dict[str, str]) -> None:
    assert f"the Ray at '{found['private address']}' was started by a program for itself" in found["own"]


@contextmanager
def _something_else() -> Iterator[int]:
    """The port of a server that takes connections and says nothing."""

    class Silent(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(2**16)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Silent) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


def test_what_is_no_ray_is_given_up_on_without_ray_s_log(capfd: pytest.CaptureFixture[str]) -> None:
    with _something_else() as port, pytest.raises(UserError, match="not answer as Ray within 3 s") as caught:
        joining.shared_cluster(f"127.0.0.1:{port}", seconds=3)
    assert str(caught.value).startswith(f"no Ray cluster at '127.0.0.1:{port}'")
    assert capfd.readouterr() == ("", "")


def test_auto_in_a_ray_job_is_the_cluster_of_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(UserError, match=r"no Ray cluster at '127\.0\.0\.1:1'"):
        joining.shared_cluster("auto")
