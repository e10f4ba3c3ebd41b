"""The report of a run: its tables, figures and page, made only from its records.

    report = Report(load_run(Path("runs/quickstart")))
    report.check()                              # raises a UserError if the records are damaged
    report.write()                              # tables, figures and the page, into the run's folder
    report.tables, report.pictures              # computed once

Runs of one suite are merged first (`reports.combine.merge`); a `RankingReport` ranks methods over several
suites, and a `SweepReport` puts their sweeps side by side. Nothing here imports torch; SciPy, Matplotlib and
pandas are imported only when needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bench.errors import UserError
from bench.records.files import inside
from bench.records.reader import Run
from reports.figures import Picture, ranking_pictures, supported, sweep_pictures, write_pictures
from reports.figures.performance_profile import pictures as profile_pictures
from reports.numbers.long_table import long_table
from reports.numbers.profiles import profiles_of
from reports.numbers.ranking import blocks_of, rank_runs
from reports.numbers.swept import is_swept, main_part
from reports.page import write_page, write_ranking_page, write_tables_page
from reports.render.files import PAGE, check_formats, write_long_table, write_tables
from reports.render.notebook import ShownTable, shown
from reports.tables.kinds import tables_of
from reports.tables.rank_table import NAME as RANKING
from reports.tables.rank_table import ranking_table
from reports.tables.sweep import NAME as SWEEP
from reports.tables.sweep import sweep_tables

__all__ = ["FORMATS", "RankingReport", "Report", "SweepReport", "check_requested"]

FORMATS = ("md", "latex", "csv", PAGE)
"""The default formats of a report."""
SUMMARY = "sweep_summary"
"""The files of the tables over several runs; sweep.csv has the cells."""


@dataclass(frozen=True)
class Report:
    """Tables, figures and the page of one run, or of several that were merged into one."""

    run: Run

    @cached_property
    def tables(self) -> list[ShownTable]:
        """The tables that the plan asks for, then the statistics and the selection rules of each variant."""
        return [shown(table) for table in tables_of(self.run)]

    @cached_property
    def pictures(self) -> list[Picture]:
        """Every figure that the records support, not yet drawn; a UserError if one cannot be drawn."""
        ranking = rank_runs([main_part(self.run).run])
        return [*supported(self.run), *ranking_pictures(ranking)]

    def check(self) -> None:
        """Raise a UserError if tables or figures cannot be made from the records; write nothing."""
        _ = self.tables, self.pictures

    def write(self, formats: Sequence[str] = FORMATS, target: Path | None = None) -> list[Path]:
        """Write tables/ and figures/ into the target folder, and report.html if `html` is a format.

        The target is the run's own folder unless another is given, which merged runs need. Whatever is wrong
        with the records is found before the first file is written.
        """
        check_requested(formats)
        self.check()
        if target is None:
            if len(self.run.sources) > 1:
                raise UserError(f"{self.run.name} have no folder in common; say where to write the report")
            target = self.run.sources[0]
        files = write_tables(self.tables, self.run.suite.name, formats, inside(target, "tables"))
        files += _long_table([self.run], formats, target)
        files += write_pictures(self.pictures, inside(target, "figures"))
        return [*files, write_page(self.run, self.tables, target)] if PAGE in formats else files


@dataclass(frozen=True)
class RankingReport:
    """The ranking of methods over the datasets of several runs."""

    runs: Sequence[Run]

    @cached_property
    def table(self) -> ShownTable | None:
        """None where there is too little to rank."""
        table = ranking_table(self._ranked)
        return shown(table) if table else None

    def write(self, formats: Sequence[str], target: Path) -> list[Path]:
        """Write the table and the critical-difference diagram; nothing where there is too little to rank."""
        check_requested(formats)
        if self.table is None:
            return []
        files = write_tables([self.table], RANKING, formats, inside(target, "tables"))
        if PAGE in formats:
            files.append(write_ranking_page(self.table, inside(target, "tables")))
        pictures = [
            *ranking_pictures(rank_runs(self._ranked)),
            *profile_pictures(profiles_of(blocks_of(self._ranked))),
        ]
        return files + write_pictures(pictures, inside(target, "figures"))

    @property
    def _ranked(self) -> list[Run]:
        return [main_part(run).run for run in self.runs]


@dataclass(frozen=True)
class SweepReport:
    """What was swept in several runs of different suites, side by side."""

    runs: Sequence[Run]

    @cached_property
    def tables(self) -> list[ShownTable]:
        """The combinations and the importances; empty where nothing was swept."""
        return [shown(table) for table in sweep_tables(self._swept)]

    def write(self, formats: Sequence[str], target: Path) -> list[Path]:
        """Write the tables, one line per cell in sweep.csv, and the figures; nothing without a sweep."""
        check_requested(formats)
        if not self._swept:
            return []
        files = write_tables(self.tables, SUMMARY, formats, inside(target, "tables"))
        files += _long_table(self._swept, formats, target)
        if PAGE in formats:
            files.append(write_tables_page(self.tables, f"{SWEEP}.html", inside(target, "tables")))
        return files + write_pictures(sweep_pictures(self._swept), inside(target, "figures"))

    @property
    def _swept(self) -> list[Run]:
        return [run for run in self.runs if is_swept(run)]


def _long_table(runs: Sequence[Run], formats: Sequence[str], target: Path) -> list[Path]:
    """Write the cells of a sweep, if there is one and CSV is a format."""
    if "csv" not in formats or not any(map(is_swept, runs)):
        return []
    return [write_long_table(*long_table(runs), inside(target, "tables") / f"{SWEEP}.csv")]


def check_requested(formats: Sequence[str]) -> None:
    """Refuse an empty list of formats and unknown names."""
    if not formats:
        raise UserError(f"no format is given; choose one or more of {', '.join(FORMATS)}")
    check_formats(formats)
