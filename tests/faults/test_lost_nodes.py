"""The second of two nodes without a shared disk is killed at random moments: all cells come back, the same.

BENCH_FAULT_NODES says how often in each of the tests, BENCH_FAULT_SEED when.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.fault_report import KILLED, FaultReport
from tests.kit.kills import Campaign, closing
from tests.kit.tune import ONE_BY_ONE, Package, assert_the_same_as_alone, journal, search_of, tiny_suite
from tests.kit.two_nodes import TwoNodes, can_hide, two_nodes
from tests.kit.undisturbed import assert_like_one_machine

pytestmark = [
    pytest.mark.faults,
    pytest.mark.xdist_group("ray"),
    pytest.mark.skipif(not can_hide(), reason="no right to make mount namespaces: nodes would share a disk"),
]

LOSSES = int(os.environ.get("BENCH_FAULT_NODES", "4"))
SEED = int(os.environ.get("BENCH_FAULT_SEED", "0"))
PACE = 1.0
"""Seconds per round: a new node has to start between two kills while the first one goes on computing."""
ROUNDS = 8
CELLS = 16


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return Package(tmp_path_factory.mktemp("lost-nodes") / "site")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What only the first node sees."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def nodes(home: Path, package: Package, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoNodes]:
    with two_nodes(home, tmp_path_factory.mktemp("abroad"), PYTHONPATH=package.path) as found:
        yield found


@pytest.fixture(autouse=True)
def found_by_name(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(package.folder)


def lose_nodes(campaign: Campaign, name: str) -> None:
    with closing(campaign):
        campaign.kill(["node"] * LOSSES, PACE)
        campaign.finish()
        campaign.check()
    assert len({line["node"] for line in campaign.package.rounds}) > LOSSES
    campaign.package.keep(name)
    print(dict(campaign.sentences))


def note(report: FaultReport, command: str, campaign: Campaign, cells: int) -> None:
    outcome = f"0 of {cells} cells lost, all equal; nothing saved was computed again"
    report.add(KILLED, f"second of two nodes of `{command}`", campaign.killed["node"], outcome)


def test_a_run(nodes: TwoNodes, package: Package, home: Path, tmp_path: Path, report: FaultReport) -> None:
    suite, out = tiny_suite(home, ROUNDS, model=ONE_BY_ONE, seeds=CELLS), home / "runs"
    command = ["run", "--suite", suite, "--out", out, "--checkpoint-every", "0.01"]
    command += ["--address", nodes.address]
    campaign = Campaign(package, command, out / "tiny", random.Random(SEED), nodes)
    lose_nodes(campaign, "run")
    cells = assert_like_one_machine(campaign.run, package, "auto", tmp_path)
    note(report, "bench run", campaign, cells)


def test_a_search(nodes: TwoNodes, package: Package, home: Path, tmp_path: Path, report: FaultReport) -> None:
    suite, out = tiny_suite(home, ROUNDS, model=ONE_BY_ONE), home / "searches"
    search = search_of(suite, out, "random", "none")
    command = [
        "tune",
        "--suite",
        suite,
        "--trials",
        CELLS,
        "--seeds",
        1,
        "--search",
        "random",
        "--scheduler",
        "none",
    ]
    command += ["--out", out, "--tuned-dir", home / "tuned", "--checkpoint-every", "0.01"]
    command += ["--address", nodes.address]
    campaign = Campaign(package, command, search.directory, random.Random(SEED), nodes)
    lose_nodes(campaign, "search")
    trials = journal(search.directory)
    assert sorted(trials) == list(range(CELLS))
    for trial in trials.values():
        assert (trial["outcome"], trial["rounds"]) == ("finished", ROUNDS)
        assert_the_same_as_alone(search, trial, tmp_path)
    note(report, "bench tune", campaign, CELLS)
