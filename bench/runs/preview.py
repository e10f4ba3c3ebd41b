"""A plan in words, with what the user should know before it runs."""

from __future__ import annotations

from collections import Counter

from bench.engine.cell_run import Conditions, code_of
from bench.engine.assembly import Assembled
from bench.engine.executors import choose
from bench.suite.methods import code_digest
from bench.suite.planning import setting_of
from bench.runs.drive import Plan


def describe(plan: Plan, conditions: Conditions, first: Assembled | None) -> list[str]:
    """The plan in words."""
    done = len(plan.cells) - len(plan.pending)
    methods = list(dict.fromkeys(cell.label for cell in plan.cells))
    lines = [
        f"suite {plan.suite.suite} v{plan.suite.version}: {plan.suite.title}",
        f"cells: {len(plan.cells)} ({len(methods)} methods × {plan.suite.seeds} seeds"
        + (f" × {len(plan.suite.variants)} variants" if plan.suite.variants else "")
        + f"), {done} already done, {len(plan.cells) - done} to run",
        f"methods: {', '.join(methods)}",
        f"folder: {plan.directory}",
    ]
    lines += _made_with_other_code(plan)
    if first is not None:
        asked = conditions.executor
        chosen, reason = choose(first.problem) if asked == "auto" else (asked, "asked for with --executor")
        lines.append(f"executor: {chosen} ({reason})")
        lines += [f"note: {note}" for note in first.fingerprints.data_notes]
        lines += _tuned_elsewhere(plan, first.fingerprints.data_checksum)
    return lines


def _made_with_other_code(plan: Plan) -> list[str]:
    """Cells are known by their configuration; whether an edit of the code changes them, the user knows."""
    present = {method: code_digest(method) for method in {cell.method for cell in plan.cells}}
    stale = Counter(
        cell.method
        for cell in plan.cells
        if code_of(plan.directory / cell.directory) not in (None, present[cell.method])
    )
    return [
        f"note: {count} cells of {method} were made before its code was changed; if that changes results, "
        f"raise its `version`, or delete {plan.directory}/cells/{method}-*"
        for method, count in stale.items()
    ]


def _tuned_elsewhere(plan: Plan, checksum: str) -> list[str]:
    """Whether the configurations in use were chosen for what is about to run."""
    methods = plan.tuning["methods"] if plan.tuning else {}
    other_data = [name for name, found in methods.items() if found["data_checksum"] != checksum]
    present = {name: {setting_of(c.config) for c in plan.cells if c.method == name} for name in methods}
    other_settings = [
        name
        for name, found in methods.items()
        if found["settings"] and not present[name] & {*found["settings"]}
    ]
    lines = []
    if other_data:
        lines.append(
            f"note: the hyperparameters of {', '.join(other_data)} were chosen on other data than that at "
            f"hand (checksum {checksum[:12]}); the tables will say so"
        )
    if other_settings:
        lines.append(
            f"note: the hyperparameters of {', '.join(other_settings)} were chosen with another dataset, "
            "partition, model or training than this run has; if that matters, run `bench tune` again"
        )
    return lines
