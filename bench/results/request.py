"""What a user asks of `bench submit` and `bench verify`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from bench.request import Option, Request, above_zero, at_least, help_of
from bench.trials.request import ComputingRequest


@dataclass(frozen=True)
class SubmitRequest(Request):
    """A run whose cells are put into the results file of their suite."""

    run: Annotated[str, Option("A run folder, or the name of a suite below --runs.")]
    results: Annotated[Path, Option("Folder of the results files.")] = Path("results")
    runs: Annotated[Path, Option(help_of(ComputingRequest, "out"))] = Path("runs")
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
    data_root: Annotated[Path | None, Option(help_of(ComputingRequest, "data_root"))] = None
    trust_code: Annotated[bool, Option("Execute Python files that the results name as models.")] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(0, cells=self.cells, seed=self.seed)
        above_zero(tolerance=self.tolerance)
