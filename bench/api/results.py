"""The result of a run: its records as tables and as pandas frames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import UserError
from bench.records.reader import Run
from bench.records.results_file import is_results_file, load_records
from reports.numbers.swept import is_swept
from reports.render.notebook import ShownTable, shown
from reports.report import FORMATS, Report

if TYPE_CHECKING:
    import pandas as pd


class Result:
    """What a run has left on disk, read once; in a notebook it displays its table."""

    def __init__(self, records: Run, report: Report | None = None) -> None:
        """`report` is that of the records, where it has been made already."""
        self.records = records
        """The typed records that everything else is made from."""
        self._report = report or Report(records)

    @property
    def path(self) -> Path:
        """The folder of the run; of merged runs, that of the first."""
        return self.records.sources[0]

    @property
    def tables(self) -> Sequence[ShownTable]:
        """All tables: those that the suite asks for, then the statistics of each variant."""
        return [shown(table) for table in self._report.tables]

    @property
    def failures(self) -> dict[str, str]:
        """Cell → why it has no result."""
        return {cell.name: cell.error or "not finished" for cell in self.records.cells if cell.result is None}

    def table(self, variant: str | None = None) -> ShownTable:
        """The paper-style table: the first, or that of the named variant of the suite."""
        if variant is None:
            return self.tables[0]
        found = [table for table in self.tables if table.variant == variant]
        if not found:
            known = ", ".join(dict.fromkeys(repr(table.variant) for table in self.tables))
            raise UserError(f"there is no table of the variant '{variant}'; known: {known}")
        return found[0]

    def frame(self) -> pd.DataFrame:
        """One row per cell and domain."""
        from reports.frames import frame

        return frame(self.records)

    def curves(self) -> pd.DataFrame:
        """One row per cell and round."""
        from reports.frames import curves

        return curves(self.records)

    def sweep(self) -> pd.DataFrame:
        """One row per cell, with a column for each swept key."""
        from reports.frames import sweep

        if not is_swept(self.records):
            raise UserError(f"nothing was swept in {self.records.name}; give `sweep` to bench.run")
        return sweep([self.records])

    def write(self, folder: str | Path | None = None, formats: Sequence[str] = FORMATS) -> list[Path]:
        """Write tables, figures and the page; by default into the folder of the run."""
        if folder is None and is_results_file(self.path):
            raise UserError(f"{self.path} is a file; say into which folder to write: result.write(FOLDER)")
        return self._report.write(formats, Path(folder) if folder is not None else self.path)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def __repr__(self) -> str:
        done = sum(cell.result is not None for cell in self.records.cells)
        return f"<Result of {self.records.suite.name}: {done} of {len(self.records.cells)} cells done>"


def load(path: str | Path, *others: str | Path, mix: bool = False) -> Result:
    """The result of the run in this folder or results file; with several of one suite, of all their cells."""
    from reports.combine.merge import merge_runs

    merged = merge_runs([load_records(Path(each)) for each in (path, *others)], mix)
    if len(merged) > 1:
        names = ", ".join(run.suite.name for run in merged)
        raise UserError(f"the folders belong to different suites ({names}); load each of them by itself")
    return Result(merged[0])
