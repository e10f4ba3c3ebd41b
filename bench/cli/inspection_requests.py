"""What a user asks of the commands that only show something: list, show, watch and doctor."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from bench.request import DataRoot, Option, Request, RunsFolder, TunedFolder, above_zero


@dataclass(frozen=True)
class ListRequest(Request):
    kind: Annotated[str, Option("suites, methods, datasets, models, encoders or runs.")]
    root: RunsFolder = Path("runs")


@dataclass(frozen=True)
class ShowRequest(Request):
    kind: Annotated[str, Option("suite, method, partition, cell or tuned.")]
    name: Annotated[str, Option("Its name; for a cell, the beginning of its id; for tuned, a suite.")] = ""
    seed: Annotated[int, Option("Seed, for a partition.")] = 0
    data_root: DataRoot = None
    root: RunsFolder = Path("runs")
    tuned_dir: TunedFolder = Path("tuned")


@dataclass(frozen=True)
class WatchRequest(Request):
    run: Annotated[str, Option("A run folder, or the name of a suite below --runs.")]
    root: RunsFolder = Path("runs")
    once: Annotated[bool, Option("Show how it stands now, and stop.")] = False
    every: Annotated[float, Option("Seconds between two looks.")] = 2.0

    def __post_init__(self) -> None:
        above_zero(every=self.every)


@dataclass(frozen=True)
class DoctorRequest(Request):
    data_root: DataRoot = None
    out: RunsFolder = Path("runs")
