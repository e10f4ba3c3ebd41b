"""The network between two nodes without a shared disk is cut for a minute: all cells come back, the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.cli import BENCH, environment, kill_session, wait_until
from tests.kit.cut_network import ADDRESS, can_cut, in_namespaces
from tests.kit.fault_report import FaultReport
from tests.kit.tune import ONE_BY_ONE, Package, tiny_suite
from tests.kit.undisturbed import assert_like_one_machine

pytestmark = [pytest.mark.faults, pytest.mark.xdist_group("ray")]

PATIENCE = 900
PAUSE = 0.2
MINUTE = 60.0
CELLS = 20


@pytest.mark.skipif(not can_cut(), reason="the user may not make network namespaces")
def test_a_run(tmp_path: Path, report: FaultReport) -> None:
    package = Package(tmp_path / "site", pace=1.0)
    home, cut = tmp_path / "home", tmp_path / "cut"
    home.mkdir()
    suite = tiny_suite(home, 8, model=ONE_BY_ONE, seeds=CELLS)
    command = ["run", "--suite", suite, "--out", home / "runs", "--checkpoint-every", "0.1"]
    process = subprocess.Popen(
        in_namespaces(MINUTE, home, sys.executable, BENCH, *command, "--address", ADDRESS),
        cwd=tmp_path,
        env=environment(PYTHONPATH=package.path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_until(lambda: _nodes(package) == 2 or process.poll() is not None, PATIENCE, PAUSE)
        nodes = _nodes(package)
        cut.touch()
        wait_until(lambda: not cut.exists() or process.poll() is not None, PATIENCE, PAUSE)
        lasted = not cut.exists()
        package.take(0)
        said, errors = process.communicate(timeout=PATIENCE)
    finally:
        kill_session(process)
    assert nodes == 2, (said, errors)
    assert lasted, "the run ended before the network was back"
    assert (process.returncode, errors) == (0, ""), (said, errors)
    for noise in ("raylet", "Traceback", "state-dump"):
        assert noise not in said
    cells = assert_like_one_machine(home / "runs" / "tiny", package, "auto", tmp_path / "undisturbed")
    report.add("Network", "cut between two nodes for a minute", 1, f"0 of {cells} cells lost, all equal")


def _nodes(package: Package) -> int:
    return len({line["node"] for line in package.rounds})
