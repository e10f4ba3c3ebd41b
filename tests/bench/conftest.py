"""A real run of two methods and two seeds, with tuned and default rows; made once, only to be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.api.observer import QUIET
from bench.results.request import SubmitRequest
from bench.runs.plan import plan_of
from bench.runs.request import RunRequest
from tests.kit.cli import write_suite
from tests.kit.studies import compute, write_chosen


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory, bench_cache: Path) -> Path:
    folder = tmp_path_factory.mktemp("study")
    suite = write_suite(folder)
    write_chosen(folder / "tuned", suite, {"fedavg": {"optimiser.lr": 0.1}, "fedprox": {}})
    request = RunRequest(str(suite), tuned="both", tuned_dir=folder / "tuned", out=folder / "runs")
    return compute(plan_of(request))


@pytest.fixture(scope="session")
def results_file(tmp_path_factory: pytest.TempPathFactory, tiny_run: Path) -> Path:
    from bench.results.submit import submit

    request = SubmitRequest(str(tiny_run), tmp_path_factory.mktemp("results"))
    return submit(request, QUIET).file
