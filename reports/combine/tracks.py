"""The shared track of a run that shows several: its rows with one setting for all suites."""

from dataclasses import replace

from bench.records.reader import Run
from bench.records.schema import DEFAULT_ROW, SHARED_ROW


def shared_track(run: Run) -> Run:
    """The run with the shared rows only, under their plain labels.

    A row whose shared setting is the one that was chosen for the suite has no shared row beside it.
    """
    shared = {cell.label.removesuffix(SHARED_ROW) for cell in run.cells if cell.label.endswith(SHARED_ROW)}
    kept = [
        replace(cell, label=cell.label.removesuffix(SHARED_ROW))
        for cell in run.cells
        if not cell.label.endswith(DEFAULT_ROW) and cell.label not in shared
    ]
    return replace(run, cells=tuple(kept))
