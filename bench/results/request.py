"""What a user asks of the commands that read results: report, compare, submit, verify and site."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from bench.request import DataRoot, Option, Request, RunsFolder, above_zero, at_least

if TYPE_CHECKING:
    from bench.records.reader import Run


@dataclass(frozen=True)
class ReportRequest(Request):
    """Runs whose tables, figures and pages are made again; runs of one suite are merged."""

    runs: Annotated[Sequence[str], Option("Run folders, results files, or names of suites below --runs.")]
    formats: Annotated[Sequence[str], Option("md, latex, csv, html, separated by commas.")] = (
        "md",
        "latex",
        "csv",
        "html",
    )
    out: Annotated[Path | None, Option("Folder for the files; default: the run's own.")] = None
    root: RunsFolder = Path("runs")
    mix: Annotated[bool, Option("Put runs into one table although they are not comparable.")] = False
    tracking_uri: Annotated[
        str | None,
        Option("MLflow store to renew the tables in; default: the one beside the run, if it has them."),
    ] = None


@dataclass(frozen=True)
class CompareRequest(Request):
    """Two runs whose cells are compared."""

    first: Annotated["str | Run", Option("A run folder, or the name of a suite below --runs.")]
    second: Annotated["str | Run", Option("Another one.")]
    root: RunsFolder = Path("runs")


@dataclass(frozen=True)
class SiteRequest(Request):
    """Results files that a site is made of."""

    results: Annotated[Path, Option("Folder of the results files.")] = Path("results")
    out: Annotated[Path, Option("Folder of the site.")] = Path("site")


@dataclass(frozen=True)
class SubmitRequest(Request):
    """A run whose cells are put into the results file of their suite."""

    run: Annotated[str, Option("A run folder, or the name of a suite below --runs.")]
    results: Annotated[Path, Option("Folder of the results files.")] = Path("results")
    root: RunsFolder = Path("runs")
    force: Annotated[bool, Option("Take results of code that is not committed.")] = False
    replace: Annotated[bool, Option("Put the run in place of what the file holds.")] = False
    rerun_sd: Annotated[
        float | None, Option("Standard deviation of reruns on other machines, in points of AVG, if measured.")
    ] = None


@dataclass(frozen=True)
class VerifyRequest(Request):
    """A results file, and which of its cells are computed again."""

    file: Annotated[Path, Option("A results file, such as results/quickstart.jsonl.")]
    cells: Annotated[int, Option("Number of cells to compute again.")] = 3
    seed: Annotated[int, Option("Seed of the choice of cells.")] = 0
    tolerance: Annotated[
        float | None,
        Option(
            "Points of AVG by which a rerun on another kind of machine may differ; default: three "
            "standard deviations, of the file's `rerun_sd` or else of 1 point."
        ),
    ] = None
    methods: Annotated[Sequence[str], Option("Files of methods that are not installed: a.py,b.py.")] = ()
    data_root: DataRoot = None
    trust_code: Annotated[bool, Option("Execute Python files that the results name as models.")] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(0, cells=self.cells, seed=self.seed)
        above_zero(tolerance=self.tolerance)
