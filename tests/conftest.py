"""What tests share: a cache for the session, and Ray where a test asks for it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported; Ray's workers inherit it


@pytest.fixture(scope="session", autouse=True)
def bench_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty BENCH_CACHE; the processes of pytest-xdist share it."""
    base = tmp_path_factory.getbasetemp()
    cache = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "bench-cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(cache))
        yield cache


@pytest.fixture(scope="session")
def ray_session(bench_cache: Path) -> Iterator[None]:
    """Ray with two CPUs. Tests that use it belong to the xdist group "ray", so that one process starts it."""
    import ray

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()
