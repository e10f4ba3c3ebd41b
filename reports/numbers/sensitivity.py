"""The settings that a run varies, and the final AVG for each value."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from bench.config.cell import SECTIONS, CellConfig
from bench.records.reader import CellRecord, Run
from reports.numbers.nesting import flat
from reports.numbers.scores import BOUNDS, domains_of

FEWEST_VALUES = 3
"""Two values are a comparison, which the table already makes."""
SYMBOLS = {"lam": "λ", "lam1": "λ₁", "lam2": "λ₂", "alpha": "α", "beta": "β", "tau": "τ", "mu": "μ"}

BySeed = Mapping[int, float]


@dataclass(frozen=True)
class Sweep:
    """One setting that varies while all others are fixed: value in ascending order → AVG by seed."""

    parameter: str
    line: str
    """The name of the line: the method, the dataset if there are several, and what tells it from others."""
    values: Mapping[float, BySeed]


@dataclass(frozen=True)
class Grid:
    """Two settings that vary together."""

    parameters: tuple[str, str]
    line: str
    """Named like the line of a sweep."""
    values: Mapping[tuple[float, float], BySeed]


@dataclass(frozen=True)
class _Trial:
    line: str
    numbers: dict[str, float]
    others: dict[str, Any]
    seed: int
    average: float


def symbol(parameter: str) -> str:
    """The symbol used in papers, if there is one; `encoder.name` becomes `encoder`."""
    name = parameter.removesuffix(".name").rpartition(".")[2]
    return SYMBOLS.get(name, name)


def sweeps(run: Run) -> list[Sweep]:
    """Every setting that takes three or more values while all others are fixed."""
    found = []
    for trials in _by_method(run):
        for parameter in _varying(trials):
            lines = []
            for group in _groups(trials, (parameter,)):
                values: dict[float, dict[int, float]] = {}
                for trial in sorted(group, key=lambda trial: trial.numbers[parameter]):
                    values.setdefault(trial.numbers[parameter], {})[trial.seed] = trial.average
                if len(values) >= FEWEST_VALUES:
                    lines.append((group[0], values))
            names = _names([trial for trial, _ in lines], (parameter,))
            found += [Sweep(parameter, name, values) for name, (_, values) in zip(names, lines, strict=True)]
    return found


def grids(run: Run) -> list[Grid]:
    """Every pair of settings with more combinations than varying one at a time would give."""
    found = []
    for trials in _by_method(run):
        for first, second in combinations(_varying(trials), 2):
            maps = []
            for group in _groups(trials, (first, second)):
                values: dict[tuple[float, float], dict[int, float]] = {}
                for trial in group:
                    at = trial.numbers[first], trial.numbers[second]
                    values.setdefault(at, {})[trial.seed] = trial.average
                rows, columns = ({at[place] for at in values} for place in (0, 1))
                if min(len(rows), len(columns)) > 1 and len(values) > len(rows) + len(columns) - 1:
                    maps.append((group[0], values))
            names = _names([trial for trial, _ in maps], (first, second))
            found += [
                Grid((first, second), name, values) for name, (_, values) in zip(names, maps, strict=True)
            ]
    return found


def mean(by_seed: BySeed) -> float:
    """The mean over the seeds."""
    return statistics.fmean(by_seed.values())


def _by_method(run: Run) -> list[list[_Trial]]:
    methods: dict[str, list[_Trial]] = {}
    labels: dict[str, set[str]] = {}
    for cell in run.cells:
        labels.setdefault(cell.method, set()).add(cell.label)
    several = len({_dataset(cell) for cell in run.cells if cell.config}) > 1
    for variant in run.variants:
        domains = domains_of(run, variant)
        for cell in run.cells:
            if cell.variant != variant or cell.method in BOUNDS or cell.config is None:
                continue
            final = cell.average(domains)
            if final is None:
                continue
            # rows of one method have different labels if the label names the value itself
            name = cell.label if len(labels[cell.method]) == 1 else cell.method
            line = f"{name}, {_dataset(cell)}" if several else name
            numbers, others = _settings(cell.config)
            trial = _Trial(line, numbers, others, cell.seed, 100 * final)
            methods.setdefault(cell.method, []).append(trial)
    return list(methods.values())


def _names(trials: list[_Trial], parameters: tuple[str, ...]) -> list[str]:
    """The line of each trial, followed by the settings that tell it from other trials on the same line."""
    names = []
    for trial in trials:
        alike = [{**other.numbers, **other.others} for other in trials if other.line == trial.line]
        differing = {
            key: value
            for key, value in {**trial.numbers, **trial.others}.items()
            if key not in parameters and any(key not in other or other[key] != value for other in alike)
        }
        names.append(", ".join([trial.line, *_in_words(differing)]))
    return names


def _in_words(settings: Mapping[str, Any]) -> list[str]:
    """`β=0.1` for each; a symbol stands for one setting only, the next one has its full name."""
    shown: dict[str, str] = {}
    for key, value in settings.items():
        name = key if symbol(key) in shown else symbol(key)
        shown[name] = f"{value:g}" if isinstance(value, float) else str(value)
    return [f"{name}={value}" for name, value in shown.items()]


def _dataset(cell: CellRecord) -> str:
    return cell.config.dataset.name if cell.config else ""


def _settings(config: CellConfig) -> tuple[dict[str, float], dict[str, Any]]:
    """The numeric settings, which may be varied, and everything else that must be equal."""
    sections = config.model_dump(mode="json", include=set(SECTIONS))
    settings = flat(config.method.hyperparameters) | flat(sections)
    numbers = {
        key: float(value)
        for key, value in settings.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    others = {key: value for key, value in settings.items() if key not in numbers}
    versions = {
        "suite.version": config.suite.version,
        "method.version": config.method.version,
        "method.source": config.method.source,
    }
    return numbers, others | versions


def _varying(trials: list[_Trial]) -> list[str]:
    seen: dict[str, set[float]] = {}
    for trial in trials:
        for key, value in trial.numbers.items():
            seen.setdefault(key, set()).add(value)
    return [key for key, values in seen.items() if len(values) > 1]


def _groups(trials: list[_Trial], parameters: tuple[str, ...]) -> list[list[_Trial]]:
    """Trials that are equal in everything but these parameters and the seed."""
    groups: dict[str, list[_Trial]] = {}
    for trial in trials:
        if all(parameter in trial.numbers for parameter in parameters):
            rest = {key: value for key, value in trial.numbers.items() if key not in parameters}
            groups.setdefault(repr((sorted(rest.items()), sorted(trial.others.items()))), []).append(trial)
    return list(groups.values())
