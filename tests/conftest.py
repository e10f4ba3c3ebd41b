"""What tests share: a cache for the session; Ray, a browser, a page and an MLflow store where a test asks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.kit.tracking import Store

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported; Ray's workers inherit it


@pytest.fixture(scope="session", autouse=True)
def bench_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty BENCH_CACHE; the processes of pytest-xdist share it."""
    base = tmp_path_factory.getbasetemp()
    cache = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "bench-cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(cache))
        yield cache


@pytest.fixture(scope="session", autouse=True)
def no_ray_in_advance() -> Iterator[None]:
    """Commands that tests call in this process begin no Ray: it would be there until the tests have ended."""
    from bench.cluster import local_ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_ray, "begin", lambda: None)
        yield


@pytest.fixture(scope="session")
def ray_session(bench_cache: Path) -> Iterator[None]:
    """Ray with two CPUs. Tests that use it belong to the xdist group "ray", so that one process starts it.

    Tests that start a Ray for themselves are the group "clusters", and run at the same time.
    """
    import ray

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="session")
def gpu_session(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder and what `tests.kit.gpu_session` did in it; for the xdist group "clusters" only."""
    from tests.kit.cli import environment, write_suite
    from tests.kit.places import REPOSITORY
    from tests.kit.tune import Package, tiny_suite

    folder = tmp_path_factory.mktemp("gpu-session")
    for kind in ("run", "tune"):
        (folder / kind).mkdir()
    write_suite(folder / "run")
    tiny_suite(folder / "tune", rounds=2)
    done = subprocess.run(
        [sys.executable, "-m", "tests.kit.gpu_session", folder],
        cwd=REPOSITORY,
        env=environment(PYTHONPATH=Package(folder / "site").path),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=900,
    )
    return folder, json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, for one file at a time: while it runs, no other test in its process can use asyncio."""
    from tests.kit.browser import chromium

    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def page_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five methods, only to be read; with the xdist group "browser" they are written once."""
    from tests.kit.page import write_five_methods

    return write_five_methods(tmp_path_factory.mktemp("page") / "run")


@pytest.fixture(scope="session")
def page_file(page_run: Path) -> Path:
    from tests.kit.page import page_of

    return page_of(page_run)


@pytest.fixture(scope="session")
def mlflow_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Tests that use it belong to the xdist group "mlflow", so that one process makes it."""
    from tests.kit.tracking import Store

    return Store(tmp_path_factory.mktemp("out"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what became of the inputs of `make fuzz`."""
    if "BENCH_FUZZ" in os.environ:
        from tests.kit.fault_report import FaultReport
        from tests.kit.hostile import tallies

        report = FaultReport()
        for kind, count, outcome in tallies():
            terminalreporter.write_line(f"{kind}: {count} inputs, {outcome}")
            report.add("Hostile inputs (`make fuzz`)", kind, count, outcome)
        report.write_if_asked()
