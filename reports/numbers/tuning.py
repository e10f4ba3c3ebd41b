"""What was spent on tuning, as the plan records it."""

from collections.abc import Mapping
from typing import Any


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
    parts += [f"{key} {value}" for key, value in spent.items() if value is not None]
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
