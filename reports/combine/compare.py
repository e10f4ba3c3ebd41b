"""What changed between two runs, cell by cell."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.records.reader import CellRecord, Run
from reports.combine.differences import differing
from reports.numbers.scores import domains_of

CellKey = tuple[str, str, str, int]
"""Method, label, variant and seed."""

NOT_COMPARED = {"cell_id", "schema_version"}
"""Keys of a configuration that follow from the others."""


@dataclass(frozen=True)
class CellChange:
    """A cell that both runs plan."""

    name: str
    averages: tuple[float | None, float | None]
    """AVG in percent on both sides; None if it is not finite."""
    domains: Mapping[str, tuple[float | None, float | None]]
    """Accuracy by domain, where the two sides differ."""
    settings: Mapping[str, tuple[str, str]] | None
    """Configuration keys with different values; None unless the cell has begun on both sides."""
    provenance: Mapping[str, tuple[str, str]] | None
    """What differs in code, data, versions or machine; None unless the cell is done on both sides."""
    states: tuple[str, str]
    """The problem on each side, such as `not finished`; "" if there is none."""

    @property
    def difference(self) -> float | None:
        """AVG of the second minus that of the first."""
        first, second = self.averages
        return None if first is None or second is None else second - first


@dataclass(frozen=True)
class RunComparison:
    """The first run against the second."""

    sources: tuple[str, str]
    plan: Mapping[str, tuple[str, str]]
    """What differs in the plans: the suite, its version, overridden settings, tuning."""
    changes: tuple[CellChange, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]


def compare_runs(first: Run, second: Run) -> RunComparison:
    """Compare two runs; cells are matched by method, label, variant and seed."""
    ours, theirs = _by_key(first), _by_key(second)
    return RunComparison(
        sources=(first.name, second.name),
        plan=differing(_plan(first), _plan(second)),
        changes=tuple(
            _change(cell, theirs[key], _domains(first, second, cell.variant))
            for key, cell in ours.items()
            if key in theirs
        ),
        only_first=tuple(cell.name for key, cell in ours.items() if key not in theirs),
        only_second=tuple(cell.name for key, cell in theirs.items() if key not in ours),
    )


def _by_key(run: Run) -> dict[CellKey, CellRecord]:
    return {(cell.method, cell.label, cell.variant, cell.seed): cell for cell in run.cells}


def _plan(run: Run) -> dict[str, object]:
    suite = {"name": run.suite.name, "version": run.suite.version}
    return {
        "suite": suite,
        "set": run.settings,
        "tuning": next((cell.tuning for cell in run.cells if cell.tuning), {}),
    }


def _domains(first: Run, second: Run, variant: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*domains_of(first, variant), *domains_of(second, variant))))


def _change(ours: CellRecord, theirs: CellRecord, domains: tuple[str, ...]) -> CellChange:
    accuracies = {domain: (_percent(ours, domain), _percent(theirs, domain)) for domain in domains}
    return CellChange(
        name=ours.name,
        averages=(_average(ours, domains), _average(theirs, domains)),
        domains={domain: pair for domain, pair in accuracies.items() if pair[0] != pair[1]},
        settings=_settings_that_differ(ours, theirs),
        provenance=_provenance_that_differs(ours, theirs),
        states=(_state(ours, domains), _state(theirs, domains)),
    )


def _settings_that_differ(ours: CellRecord, theirs: CellRecord) -> Mapping[str, tuple[str, str]] | None:
    if ours.config is None or theirs.config is None:
        return None
    first, second = (
        config.model_dump(mode="json", by_alias=True, exclude=NOT_COMPARED)
        for config in (ours.config, theirs.config)
    )
    return differing(first, second)


def _provenance_that_differs(ours: CellRecord, theirs: CellRecord) -> Mapping[str, tuple[str, str]] | None:
    if ours.result is None or theirs.result is None:
        return None
    first, second = (cell.provenance.model_dump(exclude_unset=True) for cell in (ours, theirs))
    return differing(first, second)


def _state(cell: CellRecord, domains: tuple[str, ...]) -> str:
    if cell.result is None:
        return "not finished" if cell.error is None else f"failed: {cell.error}"
    lost = [domain for domain in domains if cell.accuracy(domain) is None]
    return f"no finite value on {', '.join(lost)}" if lost else ""


def _percent(cell: CellRecord, domain: str) -> float | None:
    accuracy = cell.accuracy(domain)
    return None if accuracy is None else 100 * accuracy


def _average(cell: CellRecord, domains: tuple[str, ...]) -> float | None:
    average = cell.average(domains)
    return None if average is None else 100 * average
