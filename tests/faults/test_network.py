"""The network between two nodes is cut for a minute: all cells come back, the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.cli import BENCH, environment, kill_session, wait_until
from tests.kit.cut_network import can_cut, in_namespaces
from tests.kit.fault_report import FaultReport
from tests.kit.tune import ONE_BY_ONE, Package, tiny_suite
from tests.kit.undisturbed import assert_like_one_machine

pytestmark = [pytest.mark.faults, pytest.mark.xdist_group("ray")]

PATIENCE = 900
MINUTE = 60.0
PROGRAM = """
import os, socket, subprocess, sys, time
import ray
from tests.kit.cli import wait_until

host, port = os.environ["BENCH_ADDRESS"].split(":")


def answers():
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


assert wait_until(answers, 240), "no head"
ray.init(os.environ["BENCH_ADDRESS"], log_to_driver=False, logging_level="ERROR")
assert wait_until(lambda: sum(node["Alive"] for node in ray.nodes()) == 2, 240), "one node"
ray.shutdown()
sys.exit(subprocess.run([*sys.argv[1:], "--address", os.environ["BENCH_ADDRESS"]]).returncode)
"""


@pytest.mark.skipif(not can_cut(), reason="the user may not make network namespaces")
def test_a_run(tmp_path: Path, report: FaultReport) -> None:
    package = Package(tmp_path / "site", pace=1.0)
    suite = tiny_suite(tmp_path, 8, model=ONE_BY_ONE, seeds=16)
    out, cut = tmp_path / "runs", tmp_path / "cut"
    command = [BENCH, "run", "--suite", suite, "--out", out, "--checkpoint-every", "0.1"]
    process = subprocess.Popen(
        in_namespaces(MINUTE, sys.executable, "-c", PROGRAM, *map(str, command)),
        cwd=tmp_path,
        env=environment(PYTHONPATH=package.path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_until(lambda: _nodes(package) == 2 or process.poll() is not None, PATIENCE)
        nodes = _nodes(package)
        cut.touch()
        wait_until(lambda: not cut.exists() or process.poll() is not None, PATIENCE)
        package.take(0)
        said, errors = process.communicate(timeout=PATIENCE)
    finally:
        kill_session(process)
    assert nodes == 2, (said, errors)
    assert (process.returncode, errors) == (0, ""), (said, errors)
    for noise in ("raylet", "Traceback", "state-dump"):
        assert noise not in said
    cells = assert_like_one_machine(out / "tiny", package, "auto", tmp_path / "undisturbed")
    report.add("Network", "cut between two nodes for a minute", 1, f"0 of {cells} cells lost, all equal")


def _nodes(package: Package) -> int:
    return len({line["node"] for line in package.rounds})
