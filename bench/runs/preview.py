"""A plan in words, with what the user should know before it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bench.engine.assembly import Assembled
from bench.engine.executors import cells_at_once, choose
from bench.runs.plan import Plan
from bench.suite.methods import code_digest
from bench.suite.planning import PlannedCell
from bench.text import counted


def in_words(plan: Plan, pending: Sequence[PlannedCell], executor: str, first: Assembled | None) -> list[str]:
    """The plan in words; `first` is the problem of the first pending cell, if it could be made."""
    rows, methods = ({getattr(cell, name): None for cell in plan.cells} for name in ("label", "row"))
    settings = {cell.variant for cell in plan.cells}
    factors = [counted(len(rows), "row" if plan.suite.sweep else "method"), counted(plan.suite.seeds, "seed")]
    if settings != {""}:
        factors.append(counted(len(settings), "setting" if plan.suite.sweep else "variant"))
    lines = [
        f"suite {plan.suite.suite} v{plan.suite.version}: {plan.suite.title}",
        f"cells: {len(plan.cells)} ({' × '.join(factors)}), {_share(plan)}"
        f"{len(plan.own) - len(pending)} already done, {len(pending)} to run",
        f"methods: {', '.join(methods)}",
        *(f"sweep: {_grid(grid)}" for grid in plan.suite.sweep),
        f"folder: {plan.folder.path}",
    ]
    lines += _made_with_other_code(plan)
    if first is not None:
        auto = executor == "auto"
        chosen, reason = choose(first.problem) if auto else (executor, "asked for with --executor")
        lines.append(f"executor: {chosen} ({reason})")
        most, why = cells_at_once(first.problem, executor)
        if most > 1 and len({cell.config.stack for cell in pending}) < len(pending):
            lines.append(f"stacks: up to {most} cells per process ({why})")
        lines += [f"note: {note}" for note in first.fingerprints.data_notes]
        lines += _tuned_elsewhere(plan, first.fingerprints.data_checksum)
    return lines


def _grid(grid: Mapping[str, Sequence[Any]]) -> str:
    """`fedlsa.lam (3 values) × partition.beta (2 values)`."""
    return " × ".join(f"{key} ({counted(len(values), 'value')})" for key, values in grid.items())


def _share(plan: Plan) -> str:
    return f"{len(plan.own)} of them in shard {plan.shard}: " if plan.shard else ""


def _made_with_other_code(plan: Plan) -> list[str]:
    """Cells are known by their configuration; whether an edit of the code changes them, the user knows."""
    present = {method: code_digest(method) for method in {cell.method for cell in plan.cells}}
    stale = Counter(
        cell.method
        for cell in plan.cells
        if plan.folder.cell(cell.directory).method_code() not in (None, present[cell.method])
    )
    return [
        f"note: {counted(count, 'cell')} of {method} were computed before its code was changed; if that "
        f"changes results, raise its `version`, or delete {plan.folder.path}/cells/{method}-*"
        for method, count in stale.items()
    ]


def _tuned_elsewhere(plan: Plan, checksum: str) -> list[str]:
    """Whether the configurations in use were chosen for what is about to run."""
    methods = plan.tuning["methods"] if plan.tuning else {}
    elsewhere = [name for name, found in methods.items() if found["data_checksum"] is None]
    other_data = [
        name
        for name, found in methods.items()
        if name not in elsewhere and found["data_checksum"] != checksum
    ]
    present = {
        name: {cell.config.setting for cell in plan.cells if name in (cell.row, cell.method)}
        for name in methods
    }
    other_settings = [
        name
        for name, found in methods.items()
        if found["settings"] and not present[name] & {*found["settings"]}
    ]
    lines = []
    if elsewhere:
        lines.append(
            f"note: the hyperparameters of {', '.join(elsewhere)} were chosen on other suites than this"
        )
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
