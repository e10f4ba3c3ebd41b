"""Merges comparable runs of one suite into one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench.errors import UserError
from bench.records.reader import CellRecord, Run
from bench.records.schema import row_name
from reports.combine.differences import ABSENT, flattened
from reports.numbers.tuning import trials_of

COMPARED = {"dataset", "partition", "encoder", "training"}
"""The sections of a configuration that all rows of a table must share; a row may have its own model."""
FINGERPRINTS = {"partition_hash": "partition hash", "data_checksum": "data checksum"}
LEFT_TO_NAME = 12

Fact = tuple[str, str]
"""Something that must be the same in all runs: its name, and where it applies (row, variant, seed)."""


def merge_runs(runs: Sequence[Run], mix: bool = False) -> list[Run]:
    """One run per suite, in the order given; runs that are not comparable are refused unless `mix` is set."""
    by_suite: dict[str, list[Run]] = {}
    for run in runs:
        by_suite.setdefault(run.suite.name, []).append(run)
    return [_merged(group, mix) for group in by_suite.values()]


def _merged(runs: Sequence[Run], mix: bool) -> Run:
    runs = _without_repetition(runs)
    if len(runs) == 1:
        return runs[0]
    if not mix and (found := obstacles(runs)):
        shown = "; ".join(found[:LEFT_TO_NAME])
        more = f"; and {len(found) - LEFT_TO_NAME} more" if len(found) > LEFT_TO_NAME else ""
        raise UserError(
            f"these runs of {runs[0].suite.name} are not comparable: {shown}{more}; report them separately, "
            "or give --mix to put them into one table anyway"
        )
    return replace(
        runs[0],
        sources=tuple(dict.fromkeys(source for run in runs for source in run.sources)),
        domains=tuple(dict.fromkeys(domain for run in runs for domain in run.domains)),
        cells=tuple(_united(runs)),
        partition=next((run.partition for run in runs if run.partition), None),
    )


def _without_repetition(runs: Sequence[Run]) -> list[Run]:
    """The runs without duplicates and without those that are already part of a merged run."""
    kept: list[Run] = []
    for run in runs:
        parts = set(run.sources)
        if run not in kept and not any(parts < set(other.sources) for other in runs):
            kept.append(run)
    return kept


def _united(runs: Sequence[Run]) -> Iterable[CellRecord]:
    """Every cell once, in the order of the plans; rows with different configurations get different labels."""
    cells: dict[tuple[str, str, str], list[CellRecord]] = {}
    rivals = rival_rows(runs)
    for run, name in zip(runs, _short_names([run.name for run in runs]), strict=True):
        for cell in run.cells:
            row = cell.method, cell.label
            label = f"{cell.label} ({name})" if row in rivals else cell.label
            row_cells = cells.setdefault((cell.variant, cell.method, label), [])
            ids = [other.cell_id for other in row_cells]
            if cell.cell_id not in ids:
                row_cells.append(_labelled(cell, label))
            else:
                place = ids.index(cell.cell_id)
                row_cells[place] = _better(row_cells[place], _labelled(cell, label))
    return [cell for row_cells in cells.values() for cell in row_cells]


def _labelled(cell: CellRecord, label: str) -> CellRecord:
    """The cell under another label; so is the row that a sweep began with."""
    added = label.removeprefix(cell.label)
    swept = cell.swept and cell.swept.model_copy(update={"row": cell.swept.row + added})
    return replace(cell, label=label, swept=swept)


def _better(first: CellRecord, second: CellRecord) -> CellRecord:
    """The finished one of two records of the same cell, with the projection of either.

    Predictions stay with their own result, since another machine may have predicted otherwise.
    """
    better = second if first.result is None and second.result is not None else first
    return replace(better, projection=first.projection or second.projection)


def _short_names(sources: Sequence[str]) -> list[str]:
    """The paths without their common leading folders."""
    parts = [Path(source).parts for source in sources]
    shared = 0
    while len({each[: shared + 1] for each in parts}) == 1 and shared + 1 < min(map(len, parts)):
        shared += 1
    return ["/".join(each[shared:]) for each in parts]


def rival_rows(runs: Sequence[Run]) -> set[tuple[str, str]]:
    """Rows (method, label) whose configuration differs between runs."""
    known: dict[tuple[str, str, object], str] = {}
    rivals = set()
    for run in runs:
        for cell in run.cells:
            row = cell.method, cell.label
            at_this_seed = known.setdefault((*row, (cell.variant, cell.seed)), cell.cell_id)
            if at_this_seed != cell.cell_id:
                rivals.add(row)
            if cell.config is not None:
                setting = cell.config.replaced(seed=0).cell_id
                if known.setdefault((*row, cell.variant), setting) != setting:
                    rivals.add(row)
    return rivals


def obstacles(runs: Sequence[Run]) -> list[str]:
    """One clause per difference; a difference shared by several seeds or variants is mentioned once."""
    facts = [_facts(run) for run in runs]
    places: dict[tuple[str, str], list[str]] = {}
    for what, where in dict.fromkeys(fact for known in facts for fact in known):
        values = [known.get((what, where), set()) for known in facts]
        present = [value for value in values if value]
        if any(value != present[0] for value in present):
            said = " and ".join(
                f"{', '.join(sorted(value))} in {run.name}"
                for run, value in zip(runs, values, strict=True)
                if value
            )
            places.setdefault((what, said), []).append(where)
    return [
        f"{what}{f' of {joined}' if (joined := ', '.join(filter(None, where))) else ''} is {said}"
        for (what, said), where in places.items()
    ]


def _facts(run: Run) -> dict[Fact, set[str]]:
    facts: dict[Fact, set[str]] = {("suite version", ""): {str(run.suite.version)}}
    finished = [cell for cell in run.cells if cell.result is not None]
    if finished:
        facts["selection rule", ""] = {_selection(finished)}
    facts["model", ""] = {_changed_model(run)}
    facts |= {(f"tuning {key}", ""): {value} for key, value in _budget(run).items()}
    for cell in run.cells:
        if cell.config is not None:
            for sections, place in (
                (COMPARED, cell.variant),
                ({"model"}, cell.row),
                ({"method"}, cell.name),
            ):
                content = cell.config.model_dump(mode="json", include=sections)
                for key, value in flattened(content).items():
                    facts.setdefault((key, place), set()).add(value)
    for cell in finished:
        place = row_name("", cell.variant, cell.seed)
        for key, name in FINGERPRINTS.items():
            if digest := getattr(cell.provenance, key):
                facts.setdefault((name, place), set()).add(digest[:12])
    return facts


def _selection(finished: Sequence[CellRecord]) -> str:
    """The selection rule of a run; with both kinds of cells, the final round counts."""
    published = all(cell.as_published for cell in finished)
    return "the best round on test (as published)" if published else "the final round"


def _changed_model(run: Run) -> str:
    """The user's changes to the model; rows may have their own models, but such changes must agree."""
    changes = flattened({key: value for key, value in run.settings.items() if key.split(".")[0] == "model"})
    return ", ".join(f"{key} = {value}" for key, value in sorted(changes.items())) or "as in the suite"


def _budget(run: Run) -> Mapping[str, str]:
    """What was spent on tuning."""
    tuning = next((cell.tuning for cell in run.cells if cell.tuning), None)
    if not tuning:
        return {"budget": "none"}
    trials = {str(count) for count in trials_of(tuning).values()} or {str(tuning.get("trials", ABSENT))}
    rest = {key: value for key, value in tuning.items() if key not in ("methods", "trials")}
    return {"budget": "some", **flattened(rest), "trials": ", ".join(sorted(trials))}
