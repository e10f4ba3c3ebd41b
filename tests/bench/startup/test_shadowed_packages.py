"""A user's own `reports.py` or `methods/` in the way of ours is named in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.cli import environment
from tests.kit.places import REPOSITORY

LOADS = "import bench\nbench.load('runs')"
USES_THE_COMMAND_LINE = "from bench.cli.app import main\nmain()"
STARTS_RAY = """
import os
from bench.cluster.nodes import start_ray

os.chdir("mine")
start_ray()
"""


def _run(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    """A script in this folder, as a user starts it; our packages come last, as an installation has them."""
    script = folder / "script.py"
    last = f"import sys; sys.path.append({str(REPOSITORY)!r})\n"
    script.write_text(last + program)
    return subprocess.run(
        [sys.executable, script, "list"], cwd=folder, env=environment(), capture_output=True, text=True
    )


@pytest.mark.parametrize("name", ["methods", "reports", "search_spaces"])
@pytest.mark.parametrize("form", ["{}.py", "{}/__init__.py"])
def test_the_python_api_names_what_is_in_the_way(tmp_path: Path, name: str, form: str) -> None:
    file = tmp_path / form.format(name)
    file.parent.mkdir(exist_ok=True)
    file.touch()
    place = file.parent if file.name == "__init__.py" else file
    done = _run(tmp_path, LOADS)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"bench.errors.UserError: {place} hides the package '{name}' of bench")
    assert last.endswith("rename it, or start from a different folder")


def test_one_that_was_imported_before_is_named_too(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "reports.py").touch()
    program = "sys.path.insert(0, 'own')\nimport reports\nsys.path.pop(0)\n" + LOADS
    assert "reports.py hides the package 'reports'" in _run(tmp_path, program).stderr


def test_the_command_line_says_it_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "reports.py").touch()
    done = _run(tmp_path, USES_THE_COMMAND_LINE)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"error: {tmp_path}/reports.py hides the package 'reports'")


def test_a_folder_that_ends_up_in_front_of_ours_on_workers_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine" / "methods").mkdir(parents=True)
    (tmp_path / "mine" / "methods" / "__init__.py").touch()
    done = _run(tmp_path, STARTS_RAY)
    assert f"UserError: {tmp_path}/mine/methods hides the package 'methods'" in done.stderr.splitlines()[-1]


def test_a_folder_that_hides_nothing_is_left_alone(tmp_path: Path) -> None:
    """Python prefers our package to a folder without `__init__.py`, if both are in its path."""
    (tmp_path / "reports").mkdir()
    last = _run(tmp_path, LOADS).stderr.splitlines()[-1]
    assert "hides" not in last and "runs" in last
