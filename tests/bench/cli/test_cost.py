"""What the command line costs before it does anything: it loads nothing that it does not need."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.suite.methods import METHODS, WRAPPERS
from tests.kit.cli import BENCH, PRINTING_MODULES, environment

HEAVY = ("torch", "ray", "mlflow", "sklearn", "matplotlib", "scipy", "pandas", "numpy", "timm")
QUICK = {
    "help": ["--help"],
    "version": ["--version"],
    "help of run": ["run", "--help"],
    "list methods": ["list", "methods"],
    "list suites": ["list", "suites"],
    "show suite": ["show", "suite", "quickstart"],
}


def cpu_seconds(*command: object) -> float:
    before = os.times()
    subprocess.run(list(map(str, command)), env=environment(), check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def test_less_cpu_than_importing_torch() -> None:
    torch = cpu_seconds(sys.executable, "-c", "import torch")
    assert cpu_seconds(BENCH, *QUICK["help"]) < torch
    assert cpu_seconds(BENCH, *QUICK["list methods"]) < torch


@pytest.mark.parametrize("arguments", QUICK.values(), ids=QUICK)
def test_nothing_heavy_is_imported(arguments: list[str]) -> None:
    assert loaded_by(*arguments) & set(HEAVY) == set()


def loaded_by(*arguments: str) -> set[str]:
    """The modules in memory when a command ends."""
    done = subprocess.run(
        [sys.executable, "-c", PRINTING_MODULES, *arguments],
        env=environment(),
        check=True,
        capture_output=True,
        text=True,
    )
    return set(done.stderr.split())


def test_help_names_every_command_and_its_options() -> None:
    shown = subprocess.run([BENCH, "--help"], env=environment(), check=True, capture_output=True, text=True)
    for command in ("run", "report", "compare", "list", "show", "check", "new", "doctor", "speed"):
        assert f"│ {command} " in shown.stdout
    options = subprocess.run(
        [BENCH, "run", "--help"], env=environment(), check=True, capture_output=True, text=True
    ).stdout
    for option in ("--suite", "--methods", "--seeds", "--set", "--rounds", "--executor", "--gpus-per-trial"):
        assert option in options
    for option in ("--address", "--tracking-uri", "--data-root", "--out", "--dry-run"):
        assert option in options


def test_a_method_of_another_package_is_listed_without_being_imported(tmp_path: Path) -> None:
    about = tmp_path / "their_methods-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-methods\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[bench.methods]\ntheirs = no_such_module:Theirs\n")
    listed = subprocess.run(
        [BENCH, "list", "methods"],
        env=environment(PYTHONPATH=str(tmp_path)),
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    names = [line.split()[0] for line in listed.splitlines()]
    assert names == [
        *sorted([*METHODS.names(), "theirs"]),
        *(f"{wrapper}+METHOD" for wrapper in WRAPPERS.names()),
    ]
    assert "their-methods" in listed
