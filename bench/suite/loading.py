"""Suites by name or by file."""

from __future__ import annotations

from pathlib import Path

from bench.errors import UserError, nearest
from bench.suite.model import Suite
from bench.suite.paths import beside
from bench.suite.yaml_files import read_mapping
from bench.validation import validated

SUITES = Path(__file__).parents[1] / "suites"


def suite_names() -> list[str]:
    return sorted(file.stem for file in SUITES.glob("*.yaml"))


def as_option(name: str) -> str:
    """What to write behind `--suite` for the suite of this name: a file, unless it ships with the harness."""
    return name if name in suite_names() else f"{name}.yaml"


def load_suite(name: str) -> Suite:
    """A suite that ships with the harness, by name, or the user's own, by the path of its YAML file."""
    file = Path(name) if name.endswith((".yaml", ".yml")) else SUITES / f"{name}.yaml"
    if not file.is_file():
        if file.parent == SUITES:
            raise UserError(f"unknown suite '{name}'; {nearest(name, suite_names())}")
        raise UserError(f"no suite file {file}; give the path of a YAML file or the name of a suite")
    raw = beside(file.parent, read_mapping(file, "keys such as suite, version and methods"))
    return validated(Suite, raw, f"suite file {file.name}")
