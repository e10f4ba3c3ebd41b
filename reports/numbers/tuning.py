"""What was spent on tuning, as the plan records it."""

from collections.abc import Mapping
from typing import Any

AUTO = "auto"
"""The rule by which the number of seeds of a configuration is chosen, if it is not given."""


def tuning_budget(tuning: Mapping[str, Any]) -> str:
    """The tuning budget and the data that hyperparameters were selected on, in one phrase."""
    spent = dict(tuning)
    methods = spent.pop("methods", None)
    budgets = {str(trials) for trials in trials_of(tuning).values()}
    trials = spent.pop("trials", None)
    judged = spent.pop("selected_on", None)
    if len(budgets) > 1 and isinstance(methods, Mapping):
        each = ", ".join(f"{name} {count}" for name, count in trials_of(tuning).items())
        parts = [f"unequal numbers of trials: {each}"]
    else:
        parts = [f"{trials} trials per method"] if trials is not None else []
    if spent.get("seeds") == AUTO:
        spent["seeds"] = f"per configuration by the rule {AUTO}{_seeds_used(methods)}"
    parts += [f"{key} {value}" for key, value in spent.items() if value is not None]
    if ranges := _widened(methods):
        parts.append(f"ranges made wider during the search: {ranges}")
    found = f"tuned ({', '.join(parts)})" if parts else "tuned"
    return f"{found}, selected on {judged}" if judged is not None else found


def trials_of(tuning: Mapping[str, Any]) -> dict[str, Any]:
    """The number of trials that each tuned method was given."""
    methods = tuning.get("methods")
    if not isinstance(methods, Mapping):
        return {}
    return {
        str(name): entry.get("trials", tuning.get("trials")) if isinstance(entry, Mapping) else entry
        for name, entry in methods.items()
    }


def _seeds_used(methods: object) -> str:
    """On how many seeds the best configurations of each method were compared."""
    used = {name: found.get("seeds") for name, found in _entries(methods, "selection").items()}
    if not used:
        return ""
    each = ", ".join(f"{name} {seeds}" for name, seeds in used.items())
    return f" (1, more for the best quarter until its standard error is within its spread: {each})"


def _widened(methods: object) -> str:
    """The ranges that a search went on with, method by method."""
    return "; ".join(
        f"{name} {key} {'–'.join(map(str, ends)) if isinstance(ends, list) else ends}"
        for name, ranges in _entries(methods, "widened").items()
        for key, ends in ranges.items()
    )


def _entries(methods: object, key: str) -> dict[str, Mapping[str, Any]]:
    """What the record says under this key about each method that has it."""
    if not isinstance(methods, Mapping):
        return {}
    found = {str(name): entry.get(key) for name, entry in methods.items() if isinstance(entry, Mapping)}
    return {name: entry for name, entry in found.items() if isinstance(entry, Mapping)}
