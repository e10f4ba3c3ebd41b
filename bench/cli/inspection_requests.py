"""What a user asks of the commands that only show something: list, show, watch, doctor, check and speed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from bench.request import DataRoot, Option, Request, RunsFolder, TunedFolder, above_zero, at_least


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


@dataclass(frozen=True)
class CheckRequest(Request):
    methods: Annotated[Sequence[str], Option("Names of methods, paths of Python files, or all.")]
    overrides: Annotated[Mapping[str, Any], Option("Override a hyperparameter; may be repeated.")] = field(
        default_factory=dict
    )


@dataclass(frozen=True)
class SpeedRequest(Request):
    work: Annotated[
        Sequence[str], Option("digits, synth, cnn, heads, vit, sweep or extraction; several as a,b,c.")
    ] = ("digits",)
    repeats: Annotated[int, Option("Measurements per side, taken in turn.")] = 7

    def __post_init__(self) -> None:
        at_least(1, repeats=self.repeats)
