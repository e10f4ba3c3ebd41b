"""A search that loses its worker, its Ray, its driver or a node goes on; nothing is lost or done twice."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.search.journal import Journal
from bench.search.plan import Search
from tests.kit.cli import kill_session, read, session_members, start_bench, wait_until
from tests.kit.standings import Standing, computed_again
from tests.kit.tune import Package, assert_the_same_as_alone, journal, search_of, tiny_suite

pytestmark = pytest.mark.xdist_group("clusters")

ROUNDS = 16
TRIALS = 6
PACE = 0.1
"""Seconds a round."""
PATIENCE = 600
"""Seconds; the machine may be busy with other things."""
ORPHANED = 5
"""Seconds after which a worker has noticed that its node is dead; Ray looks every second."""

STARTED: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    yield
    while STARTED:
        kill_session(STARTED.pop())


@dataclass
class Tuning:
    """The same command, again and again."""

    package: Package
    search: Search
    arguments: list[object]
    standings: list[Standing] = field(default_factory=list)
    """What was safe at each kill."""

    def kill(self, pid: int) -> None:
        self.standings.append(Standing.now(self.search.directory))
        os.kill(pid, signal.SIGKILL)

    def start(self, *more: object) -> subprocess.Popen[str]:
        process = start_bench(*self.arguments, *more, PYTHONPATH=self.package.path)
        STARTED.append(process)
        return process

    def wait_for_rounds(self, count: int, process: subprocess.Popen[str]) -> None:
        """Until so many more were done."""
        seen = len(self.package.rounds)
        wait_until(lambda: len(self.package.rounds) >= seen + count or process.poll() is not None, PATIENCE)
        if process.poll() is not None or len(self.package.rounds) < seen + count:
            kill_session(process)
            pytest.fail(str(process.communicate()))

    def finish(self, process: subprocess.Popen[str]) -> str:
        out, err = process.communicate(timeout=PATIENCE)
        kill_session(process)
        assert (process.returncode, err) == (0, "")
        return out

    @property
    def trials(self) -> dict[int, dict[str, Any]]:
        return journal(self.search.directory)


def tuning(folder: Path, algorithm: str, scheduler: str, space: str = "wide") -> Tuning:
    suite, out = tiny_suite(folder, ROUNDS), folder / "runs"
    arguments = [
        "tune",
        "--suite",
        suite,
        "--trials",
        TRIALS,
        "--seeds",
        1,
        "--search",
        algorithm,
        "--scheduler",
        scheduler,
    ]
    arguments += [
        "--space",
        space,
        "--out",
        out,
        "--tuned-dir",
        folder / "tuned",
        "--checkpoint-every",
        "0.1",
    ]
    search = search_of(suite, out, algorithm, scheduler, space)
    return Tuning(Package(folder / "site"), search, arguments)


def member(leader: subprocess.Popen[str], name: str) -> int:
    """A process of the command's session whose program begins so."""

    def found() -> Iterator[int]:
        for pid in session_members(leader.pid):
            with contextlib.suppress(psutil.Error, IndexError):
                if Path(psutil.Process(pid).cmdline()[0]).name.startswith(name):
                    yield pid

    return next(found())


@contextlib.contextmanager
def installed(package: Package) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(package.folder)
        yield


def test_a_killed_driver_leaves_no_trace(tmp_path: Path) -> None:
    with installed(Package(tmp_path / "site", PACE)):
        work = tuning(tmp_path, "random", "none")
        process = work.start()
        work.wait_for_rounds(8, process)
        work.kill(process.pid)
        kill_session(process)
        assert "use it: bench run" in work.finish(work.start())
        assert_nothing_lost_and_nothing_twice(work)
        assert_as_undisturbed(work, tmp_path / "undisturbed")


@pytest.mark.long
@pytest.mark.parametrize(
    ("algorithm", "scheduler", "space"),
    [("random", "none", "wide"), ("grid", "none", "paper"), ("optuna", "asha", "wide")],
)
def test_worker_ray_and_driver_are_killed_in_turn(
    tmp_path: Path, algorithm: str, scheduler: str, space: str
) -> None:
    with installed(Package(tmp_path / "site", PACE)):
        work = tuning(tmp_path, algorithm, scheduler, space)
        process = work.start()
        work.wait_for_rounds(8, process)
        work.kill(member(process, "ray::ResourceTrainable"))
        work.wait_for_rounds(8, process)

        work.package.take(30)  # its workers live on for a moment, and must not come to an end in it
        work.kill(member(process, "raylet"))
        assert wait_until(lambda: process.poll() is not None, PATIENCE), "the driver waits for a dead Ray"
        kill_session(process)
        assert process.returncode != 0
        work.package.take(PACE)

        process = work.start()
        work.wait_for_rounds(8, process)
        work.kill(process.pid)
        kill_session(process)

        assert "use it: bench run" in work.finish(work.start())
        assert_nothing_lost_and_nothing_twice(work)
        if scheduler == "none":
            assert_as_undisturbed(work, tmp_path / "undisturbed")


def assert_nothing_lost_and_nothing_twice(work: Tuning) -> None:
    """What processes did after their last checkpoint was saved may have been done again."""
    trials = work.trials
    assert sorted(trials) == list(range(TRIALS))
    assert all(trial["outcome"] in ("finished", "stopped") for trial in trials.values())
    assert trials[0]["outcome"] == "finished"
    for trial in work.search.journal().trials:
        (folder,) = work.search.folders(trial)
        assert folder.is_done == (trial.outcome == "finished")
        assert not folder.checkpoints.exists()
    assert computed_again(work.package.rounds, work.standings) == []


def assert_as_undisturbed(work: Tuning, folder: Path) -> None:
    """The same numbers, values and records as if nothing had happened, and Ray had never been there."""
    work.package.take(0)
    expected = Journal(folder / "trials.jsonl")
    for number in range(TRIALS):
        values = work.search.suggestion(number, expected.trials)
        assert values is not None
        expected.suggested(number, values)
    trials = work.trials
    assert [trials[number]["values"] for number in range(TRIALS)] == [t.values for t in expected.trials]
    for trial in trials.values():
        assert (trial["outcome"], trial["rounds"]) == ("finished", ROUNDS)
        assert_the_same_as_alone(work.search, trial, folder)


@pytest.mark.long
def test_a_search_uses_two_nodes_and_survives_the_loss_of_one(tmp_path: Path) -> None:
    from ray.cluster_utils import Cluster

    package = Package(tmp_path / "site", pace=0.2)
    with installed(package):
        os.environ["PYTHONPATH"] = package.path  # of the nodes' workers
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        try:
            second = cluster.add_node(num_cpus=1)
            cluster.wait_for_nodes()
            work = tuning(tmp_path, "random", "none")
            process = work.start("--address", cluster.address)
            both = wait_until(lambda: len({line["node"] for line in package.rounds}) == 2, PATIENCE)
            assert both, "one node has done nothing"
            work.wait_for_rounds(6, process)
            work.standings.append(Standing.now(work.search.directory))
            cluster.remove_node(second, allow_graceful=False)
            lost = time.time()
            out = work.finish(process)
        finally:
            del os.environ["PYTHONPATH"]
            cluster.shutdown()
        assert "2 at once (Ray has 2 CPU: room for 1 on each of 2 nodes)" in out
        later = {line["node"] for line in package.rounds if line["started"] > lost + ORPHANED}
        assert len(later) == 1
        assert computed_again(package.rounds, work.standings) == []
        assert_as_undisturbed(work, tmp_path / "undisturbed")


@pytest.mark.long
def test_ctrl_c_keeps_everything_and_says_how_to_go_on(tmp_path: Path) -> None:
    with installed(Package(tmp_path / "site", PACE)):
        work = tuning(tmp_path, "random", "none")
        process = work.start()
        try:
            work.wait_for_rounds(4, process)
            os.killpg(process.pid, signal.SIGINT)
            text, errors = process.communicate(timeout=PATIENCE)
        finally:
            kill_session(process)
        assert (process.returncode, errors) == (130, "")
        assert "run the same command again to resume" in text
        work.finish(work.start())
        assert_as_undisturbed(work, tmp_path / "undisturbed")
        assert read(next((tmp_path / "runs").rglob("history.json")))["trials"]
