"""A hundred processes killed at random moments: all cells come back, the same, and none is computed twice.

BENCH_FAULT_KILLS says how many, BENCH_FAULT_SEED when.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.kit.fault_report import KILLED, FaultReport
from tests.kit.kills import Campaign, closing
from tests.kit.tune import ONE_BY_ONE, Package, assert_the_same_as_alone, journal, search_of, tiny_suite
from tests.kit.undisturbed import assert_like_one_machine

pytestmark = [pytest.mark.faults, pytest.mark.xdist_group("ray")]

KILLS = int(os.environ.get("BENCH_FAULT_KILLS", "100"))
SEED = int(os.environ.get("BENCH_FAULT_SEED", "0"))
PACE = 0.2
"""Seconds per round."""
ROUNDS = 8
TRIALS = 40
"""So many that a search on a quiet machine is not over before all kills are."""
NAMES = {"trial": "process of a trial", "host": "host of clients"}

RUN = {"trial": 32, "raylet": 3, "driver": 4}
HOSTS = {"host": 20, "trial": 3, "raylet": 1}
SEARCH = {"trial": 30, "raylet": 3, "driver": 4}


def shares(counts: Mapping[str, int]) -> list[str]:
    """So many of each kind, if there are a hundred kills in all."""
    return [kind for kind, count in counts.items() for _ in range(round(count * KILLS / 100))]


def note(report: FaultReport, command: str, campaign: Campaign, cells: int) -> None:
    """What the campaign did, for the report."""
    for kind, count in campaign.killed.items():
        report.add(
            KILLED,
            f"{NAMES.get(kind, kind)} of `{command}`",
            count,
            f"0 of {cells} cells lost, all equal; nothing saved was computed again",
        )
    said = Counter({sentence.partition(" (")[0]: count for sentence, count in campaign.sentences.items()})
    for sentence, count in said.items():
        print(f"{command}: {count} × {sentence}")


@pytest.mark.parametrize(
    ("cells", "kills", "options", "undisturbed"),
    [
        pytest.param(30, RUN, [], "auto", id="run"),
        pytest.param(18, HOSTS, ["--executor", "ray", "--hosts", "1"], "loop", id="hosts"),
    ],
)
def test_a_run(
    cells: int,
    kills: Mapping[str, int],
    options: list[str],
    undisturbed: str,
    tmp_path: Path,
    report: FaultReport,
) -> None:
    package = Package(tmp_path / "site")
    suite, out = tiny_suite(tmp_path, ROUNDS, model=ONE_BY_ONE, seeds=cells), tmp_path / "runs"
    command = ["run", "--suite", suite, "--out", out, "--checkpoint-every", "0.01", *options]
    with closing(Campaign(package, command, out / "tiny", random.Random(SEED))) as campaign:
        campaign.kill(shares(kills), PACE)
        campaign.finish()
        campaign.check()
    found = assert_like_one_machine(campaign.run, package, undisturbed, tmp_path / "undisturbed")
    note(report, " ".join(["bench run", *options[:2]]), campaign, found)


def test_a_search(tmp_path: Path, report: FaultReport) -> None:
    package = Package(tmp_path / "site")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(package.folder)
        suite, out = tiny_suite(tmp_path, ROUNDS, model=ONE_BY_ONE), tmp_path / "runs"
        search = search_of(suite, out, "random", "none")
        command = [
            "tune",
            "--suite",
            suite,
            "--trials",
            TRIALS,
            "--seeds",
            1,
            "--search",
            "random",
            "--scheduler",
            "none",
        ]
        command += ["--out", out, "--tuned-dir", tmp_path / "tuned", "--checkpoint-every", "0.01"]
        with closing(Campaign(package, command, search.directory, random.Random(SEED))) as campaign:
            campaign.kill(shares(SEARCH), PACE)
            campaign.finish()
            campaign.check()
        trials = journal(search.directory)
        assert sorted(trials) == list(range(TRIALS))
        for trial in trials.values():
            assert (trial["outcome"], trial["rounds"]) == ("finished", ROUNDS)
            assert_the_same_as_alone(search, trial, tmp_path / "undisturbed")
    note(report, "bench tune", campaign, TRIALS)
