"""Tuned files, runs and results made in seconds, for the tests of studies, results and the site."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.runs.plan import Plan
from bench.search.space import search_space
from bench.search.tuned import How, Scored, Spent, Tuned, write_tuned
from bench.suite.loading import load_suite
from bench.suite.model import MethodEntry
from bench.suite.planning import plan_cells
from bench.suite.rows import label_of, with_rows

COMMIT = "0123456789ab"


def write_chosen(folder: Path, suite_file: Path, chosen: Mapping[str, Mapping[str, Any]]) -> None:
    """Files as `bench tune` writes them: for each method, what a search is to have chosen."""
    suite = load_suite(str(suite_file))
    for method, values in chosen.items():
        default = plan_cells(with_rows(suite, [method]))[0].config
        write_tuned(
            folder,
            method,
            Tuned(
                suite=suite.suite,
                suite_version=suite.version,
                method=method,
                row=label_of(MethodEntry(name=method)),
                selected_on="validation",
                held_out=0.2,
                best=Scored(trial=1 if values else 0, validation=0.5, set=dict(values)),
                default=Scored(trial=0, validation=0.4, set={}),
                runner_ups=[],
                budget=Spent(
                    trials=4,
                    unit="trials",
                    rounds=4,
                    seeds=1,
                    complete=True,
                    finished=4,
                    stopped=0,
                    failed=0,
                    rounds_spent=16,
                ),
                how=How(
                    search="random",
                    scheduler="none",
                    seed=0,
                    space="wide",
                    sweep={},
                    space_hash=search_space(method, "wide", default, {}).digest,
                    id="0",
                ),
                data_checksum="0",
                commit=COMMIT,
            ),
        )


def compute(plan: Plan, commit: str = COMMIT) -> Path:
    """Run the pending cells of a plan here, without Ray; returns the folder of the run."""
    plan.write()
    for cell in plan.pending():
        run = CellRun(plan.folder.cell(cell.directory), cell.config, Conditions(commit=commit))
        while not run.done:
            run.advance()
    return plan.folder.path
