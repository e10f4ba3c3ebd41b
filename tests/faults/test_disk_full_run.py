"""The disk of a run fills up: a sentence says so, and with room the same command ends well."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.kit.cli import kill_session, run_bench, start_bench, wait_until
from tests.kit.fault_report import FaultReport
from tests.kit.small_disk import small_disk
from tests.kit.tune import ONE_BY_ONE, Package, tiny_suite
from tests.kit.undisturbed import assert_like_one_machine

pytestmark = [pytest.mark.faults, pytest.mark.xdist_group("ray")]

PATIENCE = 600


def test_a_run(tmp_path: Path, report: FaultReport) -> None:
    package = Package(tmp_path / "site", pace=0.2)
    suite = tiny_suite(tmp_path, 8, model=ONE_BY_ONE, seeds=6)
    with small_disk(tmp_path / "small") as disk:
        out = disk.path / "runs"
        command = ["run", "--suite", suite, "--out", out, "--checkpoint-every", "0.01"]
        rounds = random.Random(0).randrange(9, 20)
        process = start_bench(*command, PYTHONPATH=package.path)
        try:
            wait_until(lambda: len(package.rounds) >= rounds or process.poll() is not None, PATIENCE)
            finished = sum(1 for _ in out.rglob("result.json"))
            disk.fill()
            said, errors = process.communicate(timeout=PATIENCE)
        finally:
            kill_session(process)
        assert process.returncode == 2, (said, errors)
        assert errors.startswith("error: cannot write") and errors.count("\n") == 1, errors
        assert "Traceback" not in said, said
        assert sum(1 for _ in out.rglob("result.json")) >= finished
        disk.clear()
        package.take(0)
        outcome = run_bench(*command, PYTHONPATH=package.path)
        assert (outcome.code, outcome.err) == (0, ""), outcome
        cells = assert_like_one_machine(out / "tiny", package, "auto", tmp_path / "undisturbed")
    report.add(
        "Disk full",
        "in the middle of `bench run`",
        1,
        f"one-line error; with free space, the same command ended well: 0 of {cells} cells lost, all equal",
    )
