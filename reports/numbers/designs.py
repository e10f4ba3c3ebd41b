"""Designs: the combinations of settings in which a row was run, and the AVG of each.

The combinations of a sweep are on record, with the defaults of what was swept. Those of a suite with variants
are found by comparing the configurations of cells; their defaults are not known.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from bench.config.cell import SECTIONS, CellConfig
from bench.records.reader import CellRecord, Run
from reports.numbers.nesting import flat
from reports.numbers.scores import BOUNDS, domains_of
from reports.numbers.statistics import mean_and_std
from reports.numbers.swept import DATASET, is_of_the_problem

Value = float | str
Combination = tuple[Value, ...]
"""A value for each key of a design."""


@dataclass(frozen=True)
class Place:
    """Where a design was measured; designs of different places are never compared."""

    suite: str
    setting: str
    dataset: str


@dataclass
class Point:
    """A combination of settings."""

    by_seed: dict[int, float] = field(default_factory=dict)
    """AVG in percent, of the seeds that have one."""
    planned: int = 0
    """Number of cells."""

    @property
    def mean(self) -> float | None:
        return mean_and_std(self.by_seed.values())[0]


@dataclass(frozen=True)
class Design:
    place: Place
    method: str
    row: str
    keys: tuple[str, ...]
    """The keys that take two values or more."""
    points: Mapping[Combination, Point]
    defaults: Mapping[str, Value] | None = None
    """Key → what the row has without a sweep; None if that is not on record."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """What all of its configurations have in common and those of other designs may not have."""

    @property
    def measured(self) -> dict[Combination, Point]:
        """The points with a result."""
        return {at: point for at, point in self.points.items() if point.by_seed}

    @property
    def default(self) -> Combination | None:
        """The combination of all defaults; None if they are not on record."""
        return None if self.defaults is None else tuple(self.defaults[key] for key in self.keys)

    @property
    def complete(self) -> bool:
        """Whether every combination of the values has a result."""
        return all(at in self.measured for at in product(*map(self.levels, self.keys)))

    def levels(self, key: str) -> list[Value]:
        """The values of a key: numbers ascending, anything else as it was given."""
        place = self.keys.index(key)
        return ordered({at[place]: None for at in self.points})


def ordered(values: Mapping[Value, Any] | Sequence[Value]) -> list[Value]:
    """Numbers ascending; as they are if there is anything else among them."""
    numbers = [value for value in values if isinstance(value, int | float)]
    return list(values) if len(numbers) < len(values) else [*sorted(numbers)]


def best_of(keys: Sequence[str], means: Mapping[Combination, float]) -> set[Combination]:
    """The best combination under each value of the problem, wherever there are several to choose from.

    Values of the problem itself, such as β of a partition, are not better or worse.
    """
    choices: dict[Combination, list[Combination]] = {}
    for at in means:
        choices.setdefault(problem_of(keys, at), []).append(at)
    return {max(own, key=lambda at: means[at]) for own in choices.values() if len(own) > 1}


def problem_of(keys: Sequence[str], at: Combination) -> Combination:
    """The values of those keys that say what is to be learned."""
    return tuple(value for key, value in zip(keys, at, strict=True) if is_of_the_problem(key))


def designs_of(runs: Sequence[Run]) -> list[Design]:
    """All designs of runs of different suites, those of one method next to each other."""
    found = [design for run in runs for design in (*swept_designs(run), *_variant_designs(run))]
    methods = list(dict.fromkeys(design.method for design in found))
    return sorted(found, key=lambda design: methods.index(design.method))


def swept_designs(run: Run) -> list[Design]:
    """What was swept: one design per row, setting and dataset."""
    groups: dict[tuple[Any, ...], list[CellRecord]] = {}
    for cell in run.cells:
        if cell.swept and cell.swept.values:
            identity = cell.method, cell.swept.row, place_of(run, cell), tuple(cell.swept.values)
            groups.setdefault(identity, []).append(cell)
    return [_swept_design(run, cells) for cells in groups.values()]


def place_of(run: Run, cell: CellRecord) -> Place:
    """Suite, setting before the sweep, and dataset; the dataset is "" as long as it is not on record."""
    values = cell.swept.values if cell.swept else {}
    swept = next((str(values[key]) for key in DATASET if key in values), None)
    dataset = swept or (cell.config.dataset.name if cell.config else "")
    return Place(run.suite.name, cell.swept.setting if cell.swept else cell.variant, dataset)


def place_names(places: Sequence[Place]) -> dict[Place, str]:
    """The places in words, with no more of them than is needed to tell them apart."""
    suites = {place.suite for place in places}
    datasets = {place.dataset for place in places}
    names = {}
    for place in places:
        parts = [place.suite] if len(suites) > 1 else []
        parts += [place.setting, place.dataset] if len(datasets) > 1 else [place.setting]
        names[place] = ", ".join(dict.fromkeys(filter(None, parts)))
    return names


def _swept_design(run: Run, cells: Sequence[CellRecord]) -> Design:
    swept = [cell.swept for cell in cells if cell.swept]
    given = [{key: _value(value) for key, value in each.values.items()} for each in swept]
    keys = tuple(key for key in given[0] if key not in DATASET and len({values[key] for values in given}) > 1)
    return Design(
        place=place_of(run, cells[0]),
        method=cells[0].method,
        row=swept[0].row,
        keys=keys,
        points=_points(run, cells, [tuple(values[key] for key in keys) for values in given]),
        defaults={key: _value(value) for key, value in swept[0].defaults.items()},
    )


def _variant_designs(run: Run) -> Iterator[Design]:
    """Cells that no sweep planned and that differ in numbers only."""
    cells = [cell for cell in run.cells if not (cell.swept and cell.swept.values)]
    labels: dict[str, set[str]] = {}
    groups: dict[str, list[tuple[CellRecord, dict[str, float], dict[str, Any]]]] = {}
    for cell in cells:
        labels.setdefault(cell.method, set()).add(cell.label)
        if cell.method not in BOUNDS and cell.config is not None:
            numbers, others = _settings(cell.config)
            identity = repr((cell.method, sorted(numbers), sorted(others.items(), key=repr)))
            groups.setdefault(identity, []).append((cell, numbers, others))
    for group in groups.values():
        first, shared, others = group[0]
        keys = tuple(key for key in shared if len({numbers[key] for _, numbers, _ in group}) > 1)
        if not keys:
            continue
        combinations = [tuple(numbers[key] for key in keys) for _, numbers, _ in group]
        fixed = {key: value for key, value in shared.items() if key not in keys}
        yield Design(
            place=Place(run.suite.name, "", others["dataset.name"]),
            method=first.method,
            # rows of one method have different labels if the label names the value itself
            row=first.label if len(labels[first.method]) == 1 else first.method,
            keys=keys,
            points=_points(run, [cell for cell, _, _ in group], combinations),
            constants=fixed | others,
        )


def _points(
    run: Run, cells: Sequence[CellRecord], combinations: Sequence[Combination]
) -> dict[Combination, Point]:
    """The cells by their combination."""
    domains = {variant: domains_of(run, variant) for variant in {cell.variant for cell in cells}}
    points: dict[Combination, Point] = {}
    for cell, at in zip(cells, combinations, strict=True):
        point = points.setdefault(at, Point())
        point.planned += 1
        average = cell.average(domains[cell.variant])
        if average is not None:
            point.by_seed[cell.seed] = 100 * average
    return points


def _value(value: Any) -> Value:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else str(value)


def _settings(config: CellConfig) -> tuple[dict[str, float], dict[str, Any]]:
    """The numeric settings, which may vary, and everything else that must be equal."""
    sections = config.model_dump(mode="json", include=set(SECTIONS))
    settings = flat(config.method.hyperparameters) | flat(sections)
    numbers = {key: found for key, value in settings.items() if isinstance(found := _value(value), float)}
    others = {key: value for key, value in settings.items() if key not in numbers}
    versions = {
        "suite.version": config.suite.version,
        "method.version": config.method.version,
        "method.source": config.method.source,
    }
    return numbers, others | versions
