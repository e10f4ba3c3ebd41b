"""Two nodes without a shared disk: all cells come back, the same as from one machine; one node is lost.

The second node sees neither run folder nor data. One cluster and one driver serve all tests, since it is
the starts and imports that take time.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.data import from_arrays
from tests.kit.cli import (
    TINY,
    Outcome,
    assert_one_sentence,
    environment,
    write_suite,
)
from tests.kit.places import REPOSITORY
from tests.kit.tune import Package, assert_the_same_as_alone, journal, search_of
from tests.kit.two_nodes import TwoNodes, can_hide, two_nodes
from tests.kit.undisturbed import assert_like_one_machine

pytestmark = pytest.mark.xdist_group("clusters")

ROUNDS = 8
TRIALS = 3
SESSION = """
import json, os, signal, sys, threading
from pathlib import Path
import ray
from tests.kit.cli import call_bench, session_members, wait_until
from tests.kit.tune import Package

home, package, address, second = Path(sys.argv[1]), Package(Path(sys.argv[2])), sys.argv[3], int(sys.argv[4])
command = ["--suite", home / "tiny.yaml", "--address", address, "--checkpoint-every", "0.1"]


def bench(name, *more):
    return call_bench(name, *command, *more)


def of_the_other_node():
    here = ray.get_runtime_context().get_node_id() if ray.is_initialized() else ""
    return [line for line in package.rounds if here and line["node"] != here]


def in_the_middle(kill):
    # Both nodes take part, and something of the second is killed when it has done a part of a cell.
    def work():
        if wait_until(lambda: any(line["round"] >= 3 for line in of_the_other_node()), 300):
            kill()
            package.alone()

    package.together(2)
    threading.Thread(target=work, daemon=True).start()


def kill_a_worker():
    os.kill(of_the_other_node()[-1]["pid"], signal.SIGKILL)


def kill_the_node():
    for process in session_members(second):
        os.kill(process, signal.SIGKILL)
    package.keep("before the loss")


outcomes = {}
in_the_middle(kill_a_worker)
outcomes["run"] = bench("run", "--out", home / "runs", "--seeds", "2")
package.keep("run")
outcomes["actors"] = bench("run", "--out", home / "actors", "--executor", "ray", "--hosts", "1")
outcomes["greedy"] = bench("run", "--out", home / "greedy", "--cpus-per-trial", "2")
outcomes["many hosts"] = bench("run", "--out", home / "greedy", "--executor", "ray", "--hosts", "2")
left = [file.name for file in Path(sys.argv[5]).glob("bench-cells-*")]
package.keep("actors")
in_the_middle(kill_the_node)
search = ["--search", "random", "--scheduler", "none", "--trials", "TRIALS", "--seeds", "1"]
search += ["--tuned-dir", home / "tuned"]
outcomes["tune"] = bench("tune", "--method", "steady", "--out", home / "tuning", *search)
print(json.dumps({"outcomes": outcomes, "left": left}))
""".replace("TRIALS", str(TRIALS))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What only the driver's node sees: suite, data, cache and run folders."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return Package(tmp_path_factory.mktemp("two-nodes") / "site", pace=0.1)


@pytest.fixture(scope="module")
def suite(home: Path) -> Iterator[Path]:
    """On vectors of the user's own, whose file and cache are hidden from the second node."""
    draw = np.random.default_rng(0)
    labels = np.arange(240) % 3
    vectors = draw.normal(size=(240, 8)).astype(np.float32) + labels[:, None]
    train, test = slice(0, 160), slice(160, 240)
    domains = np.where(np.arange(240) % 2, "odd", "even")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(home / "cache"))
        data = from_arrays(
            vectors[train],
            labels[train],
            vectors[test],
            labels[test],
            domain_train=domains[train],
            domain_test=domains[test],
        )
        training = TINY["training"] | {"rounds": ROUNDS}
        yield write_suite(home, dataset=data.as_config(), training=training, methods=["steady"], seeds=1)


@pytest.fixture(scope="module")
def cluster(home: Path, package: Package, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoNodes]:
    with two_nodes(home, tmp_path_factory.mktemp("abroad"), PYTHONPATH=package.path) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def refusal(cluster: TwoNodes, home: Path) -> str:
    """What a driver says whose code, hidden from the other node, differs from the one there."""
    changed = home / "changed"
    for folder in ("bench", "methods", "search_spaces"):
        shutil.copytree(REPOSITORY / folder, changed / folder)
    with (changed / "methods" / "fedavg.py").open("a") as file:
        file.write("# edited on this machine alone\n")
    program = "import sys; from bench.cluster.nodes import start_ray; start_ray(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", program, cluster.address],
        cwd=changed,
        env=environment(PYTHONPATH=str(changed)),
        capture_output=True,
        text=True,
        timeout=240,
    )
    return (done.stderr.strip().splitlines() or [""])[-1]


@pytest.fixture(scope="module")
def session(cluster: TwoNodes, refusal: str, home: Path, package: Package, suite: Path) -> dict[str, Any]:
    arguments = [home, package.folder, cluster.address, cluster.second.pid, cluster.scratch]
    done = subprocess.run(
        [sys.executable, "-c", SESSION, *map(str, arguments)],
        env=environment(PYTHONPATH=package.path, BENCH_CACHE=str(home / "cache")),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=600,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def outcome(session: dict[str, Any], name: str) -> Outcome:
    return Outcome(*session["outcomes"][name])


def lines_of(package: Package, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (package.folder / f"done-{name}.jsonl").read_text().splitlines()]


def assert_quiet(outcome: Outcome) -> None:
    assert (outcome.code, outcome.err) == (0, ""), outcome
    for noise in ("raylet", "Traceback", "state-dump", "Worker"):
        assert noise not in outcome.out


def test_cells_of_both_nodes_come_back(
    session: dict[str, Any], cluster: TwoNodes, home: Path, package: Package, tmp_path: Path
) -> None:
    assert_quiet(outcome(session, "run"))
    assert f"joined the Ray cluster at {cluster.address}: 2 nodes with 1 CPU\n" in outcome(session, "run").out
    assert "2 at once (Ray has 2 CPU: room for 1 on each of 2 nodes)" in outcome(session, "run").out
    assert len({line["node"] for line in lines_of(package, "run")}) == 2
    assert_like_one_machine(home / "runs" / "tiny", package, "auto", tmp_path)


def test_a_killed_process_goes_on_from_the_checkpoint_that_the_driver_has(
    session: dict[str, Any], package: Package
) -> None:
    lines = lines_of(package, "run")
    processes = [{line["pid"] for line in lines if line["seed"] == seed} for seed in (0, 1)]
    assert sorted(map(len, processes)) == [1, 2], "one was killed and replaced"
    done = Counter((line["seed"], line["round"]) for line in lines)
    assert done[(0, 1)] == done[(1, 1)] == 1, "it began again"


def test_hosts_on_another_node_than_their_server(
    session: dict[str, Any], home: Path, package: Package, tmp_path: Path
) -> None:
    assert_quiet(outcome(session, "actors"))
    assert_like_one_machine(home / "actors" / "tiny", package, "loop", tmp_path)


def test_what_fits_no_single_node_is_refused(session: dict[str, Any], home: Path) -> None:
    expected = "a trial needs 2 CPU on one node but Ray has 2 nodes with 1 CPU"
    assert_one_sentence(outcome(session, "greedy"), expected, "--cpus-per-trial")
    hosts = "a trial needs 1 CPU, and 1 CPU on one node for each of 2 hosts, but Ray has 2 nodes with 1 CPU"
    assert_one_sentence(outcome(session, "many hosts"), hosts, "--hosts")
    assert not (home / "greedy").exists()


def test_nothing_is_left_on_the_other_node(session: dict[str, Any]) -> None:
    assert session["left"] == []


def test_a_search_survives_the_loss_of_a_node(
    session: dict[str, Any], home: Path, package: Package, suite: Path, tmp_path: Path
) -> None:
    assert_quiet(outcome(session, "tune"))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(package.folder)
        search = search_of(suite, home / "tuning", "random", "none")
        trials = journal(search.directory)
        assert len(trials) == TRIALS
        assert len({line["node"] for line in lines_of(package, "before the loss")}) == 2
        for trial in trials.values():
            assert (trial["outcome"], trial["rounds"]) == ("finished", ROUNDS)
            assert_the_same_as_alone(search, trial, tmp_path)


@pytest.mark.skipif(not can_hide(), reason="both nodes would import the driver's code")
def test_a_node_with_other_code_is_refused(refusal: str) -> None:
    assert "UserError: node " in refusal
    assert " has code " in refusal
    assert "install the same version on both" in refusal
