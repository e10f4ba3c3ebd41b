"""The numbers that papers print, kept in YAML files beside this one and found by suite and method."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import takewhile
from typing import Any

import yaml

AVERAGE = "average"


@dataclass(frozen=True)
class Printed:
    """What a paper prints for one method on one suite, in percent."""

    paper: str
    trust: str
    average: float | None
    columns: Mapping[str, float | None]
    """By domain or by variant, as the paper's table has it."""


@dataclass(frozen=True)
class Paper:
    """A paper whose tables are known."""

    name: str
    about: str
    """Authors, title and what its numbers are, as the head of the file says."""
    trust: str
    suites: tuple[str, ...]


@dataclass(frozen=True)
class _Row:
    printed: Printed
    settings: Mapping[str, Any]
    """Hyperparameters that a run must have for the row to apply to it."""
    unless: Mapping[str, Any]
    """Hyperparameters with which it does not apply; none: it always does."""


def printed_numbers(
    suite: str, method: str, hyperparameters: Mapping[str, Any] | None = None
) -> Printed | None:
    """The printed row of a method on a suite; None if no known paper prints one.

    A row for certain hyperparameters, as in an ablation, is found only with these.
    """
    known = hyperparameters or {}
    for row in _all_printed().get((suite, method), ()):
        if _has(known, row.settings) and not (row.unless and _has(known, row.unless)):
            return row.printed
    return None


def _has(known: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether every wanted value is there, inside dictionaries too."""
    return all(
        _has(found, value)
        if isinstance(value, Mapping) and isinstance(found := known.get(key), Mapping)
        else known.get(key) == value
        for key, value in wanted.items()
    )


@dataclass(frozen=True)
class Threshold:
    """An average that a faithful rerun of a paper should reach, in percent."""

    paper: str
    at_least: float


def threshold(suite: str, method: str, variant: str = "") -> Threshold | None:
    """What a method should reach on a suite, in one of its variants; None if nothing is known."""
    for _, paper in _files():
        for goal in paper.get("thresholds", ()):
            if (goal["suite"], goal["method"], goal.get("variant", "")) == (suite, method, variant):
                return Threshold(paper["paper"], goal["at_least"])
    return None


@cache
def papers() -> tuple[Paper, ...]:
    """Every paper of which numbers are known."""
    return tuple(
        Paper(paper["paper"], _head(text), " ".join(paper["trust"].split()), tuple(paper["tables"]))
        for text, paper in _files()
    )


def _head(text: str) -> str:
    """The comment at the beginning of a file."""
    lines = takewhile(lambda line: line.startswith("#"), text.splitlines())
    return " ".join(line.lstrip("# ").strip() for line in lines)


@cache
def _files() -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Text and content of every file, in order of their names."""
    folder = files("reports").joinpath("published")
    named = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".yaml")), key=lambda file: file.name
    )
    texts = [file.read_text(encoding="utf-8") for file in named]
    return tuple((text, yaml.safe_load(text)) for text in texts)


@cache
def _all_printed() -> dict[tuple[str, str], list[_Row]]:
    """(suite, method) → rows; `set` and `unless` tell several rows of one method apart."""
    found: dict[tuple[str, str], list[_Row]] = {}
    for _, paper in _files():
        for suite, table in paper["tables"].items():
            for method, row in table["rows"].items():
                if (suite, method) in found:
                    raise ValueError(f"{paper['paper']}: {method} on {suite} is printed in two files")
                settings = row if isinstance(row[0], dict) else [{"values": row}]
                found[suite, method] = [
                    _Row(
                        _printed(paper, table["columns"], each["values"]),
                        each.get("set", {}),
                        each.get("unless", {}),
                    )
                    for each in settings
                ]
    return found


def _printed(paper: Mapping[str, Any], columns: list[Any], values: list[float | None]) -> Printed:
    """One value per column, then the average, unless the table has none or consists of averages."""
    names = [str(column) for column in columns]
    if len(values) == len(names) + 1:
        names.append(AVERAGE)
    by_name = dict(zip(names, values, strict=True))
    average = by_name.pop(AVERAGE, None)
    return Printed(paper["paper"], " ".join(paper["trust"].split()), average, by_name)
