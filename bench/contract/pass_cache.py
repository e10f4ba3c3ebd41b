"""Whether a method has passed the contract: remembered per version of its code, beside the other caches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bench.contract.report import Report
from bench.data.cache import cache_root
from bench.suite.methods import AROUND, METHODS, WRAPPERS, code_digest

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
    """Whether the method, and all wrappers around it, come with the package `methods`."""
    *wrappers, inmost = name.split(AROUND)
    return not METHODS.is_own(name) and METHODS.ships(inmost) and all(map(WRAPPERS.ships, wrappers))


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
