"""The rounds of a cell as columns, without what a report can do without: seconds, losses, own metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.config.names import MOST_ROUNDS
from bench.records.schema import RoundRecord

MEASURED = ("personal", "validation")
COUNTED = ("bytes_up", "bytes_down", "clients", "dropped")


def columns_of(rounds: Sequence[RoundRecord]) -> dict[str, Any]:
    """`test` has the rounds that were evaluated and a column per domain; a constant column is one number."""
    columns: dict[str, Any] = {"round": _range([line.round for line in rounds])}
    evaluated = [line for line in rounds if line.test]
    if evaluated:
        domains = list(evaluated[-1].test or {})
        columns["test"] = {
            "round": _range([line.round for line in evaluated]),
            "accuracy": {domain: [(line.test or {})[domain] for line in evaluated] for domain in domains},
        }
    for name in MEASURED:
        found = {line.round: value for line in rounds if (value := getattr(line, name)) is not None}
        if found:
            columns[name] = {"round": _range(list(found)), "value": list(found.values())}
    for name in COUNTED:
        values = [getattr(line, name) for line in rounds]
        columns[name] = values[0] if len(set(values)) == 1 else values
    return columns


def rounds_from(columns: Mapping[str, Any]) -> list[RoundRecord]:
    """The rounds again."""
    numbers = _numbers(columns["round"])
    lines: dict[int, dict[str, Any]] = {number: {"round": number} for number in numbers}
    if test := columns.get("test"):
        for place, number in enumerate(_numbers(test["round"])):
            lines[number]["test"] = {name: values[place] for name, values in test["accuracy"].items()}
    for name in MEASURED:
        if found := columns.get(name):
            for number, value in zip(_numbers(found["round"]), found["value"], strict=True):
                lines[number][name] = value
    for name in COUNTED:
        values = columns[name] if isinstance(columns[name], list) else [columns[name]] * len(numbers)
        for number, value in zip(numbers, values, strict=True):
            lines[number][name] = value
    return [RoundRecord.model_validate(lines[number]) for number in numbers]


def _range(numbers: Sequence[int]) -> list[int] | str:
    """`0-100` where every number in between is there, else the numbers."""
    if len(numbers) > 1 and list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}-{numbers[-1]}"
    return list(numbers)


def _numbers(text: list[int] | str) -> list[int]:
    if isinstance(text, str):
        first, last = map(int, text.split("-"))
        if not 0 <= first <= last <= MOST_ROUNDS:
            raise ValueError(f"the rounds are not within 0 and {MOST_ROUNDS}")
        return list(range(first, last + 1))
    return text
