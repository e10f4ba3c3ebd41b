"""Whether a method has passed the contract: remembered per version of its code, beside the other caches."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bench.contract.report import Report
from bench.data.cache import cache_root
from bench.engine.conditions import Conditions
from bench.suite.methods import AROUND, METHODS, code_digest

if TYPE_CHECKING:
    from methods.base import FedAlgorithm

VERSION = 7
"""Raised when the contract demands more than before, so that methods are checked again."""
Standing = Literal["passed", "failed", "unchecked"]


def standing(method: str | type[FedAlgorithm]) -> Standing:
    """What is known of a method as its code is now; the tests hold all shipped methods to the contract."""
    name = METHODS.resolve(method)
    if ships_here(name):
        return "passed"
    file = _file(name)
    if not file.is_file():
        return "unchecked"
    try:
        return "passed" if json.loads(file.read_text(encoding="utf-8"))["passed"] is True else "failed"
    except (OSError, ValueError, KeyError, TypeError):
        return "unchecked"


def passed(method: str | type[FedAlgorithm]) -> bool:
    return standing(method) == "passed"


def ships_here(name: str) -> bool:
    """Whether the method, and the wrapper around it, are files of the package `methods`."""
    import methods

    home = Path(methods.__file__ or "").parent
    inner = name.rpartition(AROUND)[2]
    return not METHODS.is_own(name) and (home / f"{inner}.py").is_file() and _is_shipped_wrapper(home, name)


def _is_shipped_wrapper(home: Path, name: str) -> bool:
    *wrappers, _ = name.split(AROUND)
    return all((home / "wrappers" / f"{wrapper}.py").is_file() for wrapper in wrappers)


def with_methods(conditions: Conditions, names: Collection[str]) -> Conditions:
    """The conditions under which workers know these methods, and records say which have not passed."""
    standings = {name: standing(name) for name in names}
    return replace(
        conditions,
        contract={name: found for name, found in standings.items() if found != "passed"},
        own_methods=tuple(METHODS.to_bytes(name) for name in sorted(names) if METHODS.is_own(name)),
    )


def record(name: str, report: Report) -> None:
    """Remember an outcome for this version of the method's code."""
    file = _file(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "method": name,
        "contract": VERSION,
        "passed": report.passed,
        "findings": [f"{finding.rule}: {finding}" for finding in report.findings],
    }
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    draft.replace(file)


def _file(name: str) -> Path:
    return cache_root() / "contract" / f"v{VERSION}-{code_digest(name)}.json"
