"""Comparison tables for federated learning that can be trusted.

    import bench

    result = bench.run("quickstart", methods=["fedavg", "feddyn"], seeds=3, rounds=20)
    result.table()                       # the paper-style table; in a notebook it displays itself
    result.frame()                       # pandas: one row per cell and domain
    result.curves()                      # pandas: one row per cell and round

    bench.load("runs/digits")            # the result of an earlier run, or of a results file
    bench.compare(first, second)         # what changed between two results
    bench.tune("quickstart", methods="all", trials=20)
    bench.study(["quickstart", "pacs"])  # tune, run tuned and default rows, rank over the suites
    bench.check(MyMethod)                # hold a method to the contract
    bench.load_failure("3f9a1c")         # the arguments that failed in a run with the executor debug

Methods, datasets and models may be given as objects; see `run`. Importing this package is cheap: torch, Ray
and the like are imported by the functions that need them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench import data, models
    from bench.api.compare import compare
    from bench.api.failure import load_failure
    from bench.api.results import Result, load
    from bench.api.run import run
    from bench.api.study import StudyResult, study
    from bench.api.tune import TuneResult, tune
    from bench.contract import check
    from bench.errors import UserError

__all__ = [
    "Result",
    "StudyResult",
    "TuneResult",
    "UserError",
    "check",
    "compare",
    "data",
    "load",
    "load_failure",
    "models",
    "run",
    "study",
    "tune",
]

_HOMES = {
    "Result": "bench.api.results",
    "StudyResult": "bench.api.study",
    "TuneResult": "bench.api.tune",
    "UserError": "bench.errors",
    "check": "bench.contract",
    "compare": "bench.api.compare",
    "load": "bench.api.results",
    "load_failure": "bench.api.failure",
    "run": "bench.api.run",
    "study": "bench.api.study",
    "tune": "bench.api.tune",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is asked for."""
    if name in _HOMES:
        from bench.startup.shadowed_packages import refuse_shadowed_packages

        refuse_shadowed_packages()
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in ("data", "models"):
        return importlib.import_module(f"bench.{name}")
    raise AttributeError(f"module 'bench' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
