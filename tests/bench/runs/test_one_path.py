"""`bench run`, `bench.run` and `bench study` are one path: equal requests meet equal conditions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bench
from bench.engine.conditions import Conditions
from bench.runs.plan import Plan
from bench.suite import loading
from tests.kit.cli import call_bench, write_suite

pytestmark = pytest.mark.xdist_group("ray")

FEW: dict[str, Any] = {"seeds": 2, "rounds": 1}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any, str], list[str]]]:
    """Counts the calls of a function: what its first argument is called."""

    def count(owner: Any, name: str) -> list[str]:
        calls: list[str] = []
        original = getattr(owner, name)

        def counting(*arguments: Any, **options: Any) -> Any:
            calls.append(str(arguments[0]))
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, counting)
        return calls

    yield count


@pytest.fixture
def driven(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], Conditions]]:
    """Which cells were to be computed, and under which conditions; none is."""
    from bench.trials import cell_trials

    seen: list[tuple[list[str], Conditions]] = []

    def note(run: Any, cells: Any, conditions: Conditions, *_: Any) -> None:
        seen.append((sorted(cell.cell_id for cell in cells), replace(conditions, data=None)))

    monkeypatch.setattr(cell_trials, "run_cells", note)
    return seen


def test_all_three_drive_the_same_cells_under_the_same_conditions(
    ray_session: None, driven: list[tuple[list[str], Conditions]], tmp_path: Path
) -> None:
    suite = write_suite(tmp_path, methods=["fedavg", "fedprox"])
    places: dict[str, Any] = {"out": tmp_path / "runs", "tuned_dir": tmp_path / "tuned"}
    options = [part for key, value in (FEW | places).items() for part in (_flag(key), value)]
    searches = ["--trials", 1, "--methods", "fedavg,fedprox"]
    assert call_bench("study", "--suite", suite, *options, *searches).code == 1  # no cell has a result
    assert call_bench("run", "--suite", suite, *options, "--tuned", "both").code == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bench.run(suite, **FEW, **places, tuned="both", progress=False)
    study, run, api = driven
    assert study == run == api
    ids, conditions = run
    assert len(ids) == 4 and conditions.together > 1


def test_a_suite_is_parsed_once_and_the_folder_looked_at_once_before_and_once_under_the_lock(
    ray_session: None,
    driven: list[tuple[list[str], Conditions]],
    counted: Callable[[Any, str], list[str]],
    tmp_path: Path,
) -> None:
    suite = write_suite(tmp_path)
    parsed, scanned = counted(loading, "read_mapping"), counted(Plan, "pending")
    assert call_bench("run", "--suite", suite, "--out", tmp_path / "runs").code == 1
    assert parsed == [str(suite)] and len(scanned) == 2 and len(driven) == 1


def test_a_dry_run_parses_and_looks_once(counted: Callable[[Any, str], list[str]], tmp_path: Path) -> None:
    suite = write_suite(tmp_path)
    parsed, scanned = counted(loading, "read_mapping"), counted(Plan, "pending")
    assert call_bench("run", "--suite", suite, "--out", tmp_path / "runs", "--dry-run").code == 0
    assert parsed == [str(suite)] and len(scanned) == 1
    parsed.clear()
    assert call_bench("study", "--suite", suite, "--out", tmp_path / "runs", "--dry-run").code == 0
    assert parsed == [str(suite)]


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
