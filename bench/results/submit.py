"""From a run folder to `results/SUITE.jsonl`: what a result must have, and how files are merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.errors import UserError
from bench.observer import Observer
from bench.records.reader import CellRecord, Run, load_run
from bench.records.results_file import (
    LARGEST_SD,
    SUFFIX,
    line_of,
    read_lines,
    run_of,
    write_results,
)
from bench.records.round_columns import columns_of
from bench.records.run_folder import find_run
from bench.results.consistency import inconsistencies
from bench.results.request import SubmitRequest
from bench.text import counted
from reports.combine.merge import merge_runs, obstacles, rival_rows

SHOWN = 5
PROVENANCE = (
    "versions",
    "hardware",
    "executor",
    "method_code",
    "data_checksum",
    "partition_hash",
    "initial_weights",
)


@dataclass(frozen=True)
class Submitted:
    file: Path
    added: int
    """Cells that the file did not have."""
    total: int


def submit(request: SubmitRequest, observer: Observer) -> Submitted:
    """Check a run and write its cells into the results file of its suite, beside those already there."""
    rerun_sd = request.rerun_sd
    if rerun_sd is not None and not 0 <= rerun_sd <= LARGEST_SD:
        raise UserError(f"--rerun-sd {rerun_sd:g}: must be within 0 and {LARGEST_SD:g} points")
    run_folder = find_run(request.run, request.root)
    run = load_run(run_folder)
    if found := [*problems(run, request.force)]:
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise UserError(f"{run_folder} cannot be submitted: {'; '.join(found[:SHOWN])}{more}")
    file = request.results / f"{run.suite.name}{SUFFIX}"
    known: Run | None = None
    if file.exists() and not request.replace:
        header, lines = read_lines(file)
        known = run_of(file, header, lines)
        rerun_sd = rerun_sd if rerun_sd is not None else header.rerun_sd
        _refuse_what_cannot_be_merged(file, known, run)
    united = merge_runs([known, run] if known else [run])[0]
    write_results(file, united, rerun_sd)
    before = {cell.cell_id for cell in known.cells} if known else set()
    return Submitted(file, len({cell.cell_id for cell in run.cells} - before), len(united.cells))


def problems(run: Run, force: bool = False) -> Iterator[str]:
    """What keeps a run from being submitted, one clause each."""
    if unfinished := [cell.name for cell in run.cells if cell.result is None]:
        yield f"{counted(len(unfinished), 'cell')} not finished ({unfinished[0]}, …); run the suite again"
    for cell in run.cells:
        if cell.result is not None:
            yield from (f"{cell.name}: {problem}" for problem in _problems(cell, force))


def _problems(cell: CellRecord, force: bool) -> Iterator[str]:
    yield from inconsistencies(cell)
    provenance = cell.provenance
    missing = [name for name in PROVENANCE if not getattr(provenance, name)]
    if missing:
        yield f"its provenance lacks {', '.join(missing)}"
    if provenance.contract in ("failed", "unchecked"):
        yield f"its method has not passed `bench check` ({provenance.contract}); check it and run again"
    if force:
        return
    if not provenance.commit:
        yield "its commit is unknown; run from a checkout, or give --force"
    elif provenance.commit.endswith("+"):
        yield f"it was computed with code beyond commit {provenance.commit[:-1]}; commit it, or give --force"


def _refuse_what_cannot_be_merged(file: Path, known: Run, run: Run) -> None:
    reasons = [*obstacles([known, run])]
    reasons += [f"{label} has other hyperparameters" for _, label in sorted(rival_rows([known, run]))]
    before = {cell.cell_id: cell for cell in known.cells}
    reasons += [
        f"{cell.name} has other accuracies"
        for cell in run.cells
        if cell.cell_id in before and _outcome(cell) != _outcome(before[cell.cell_id])
    ]
    if reasons:
        raise UserError(
            f"{run.name} does not fit what {file} holds: {'; '.join(reasons[:SHOWN])}; give --replace to put "
            "it in place of the file"
        )


def _outcome(cell: CellRecord) -> object:
    """What another run of the same cell must agree in."""
    return columns_of(cell.rounds), line_of(cell).config
