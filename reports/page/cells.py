"""A cell as the page needs it: what it is, how it ended, and its history as columns."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.records.reader import CellRecord
from bench.records.schema import RoundRecord
from reports.page.numbers import count, plain, share, short


def cell_content(cell: CellRecord, domains: Sequence[str]) -> dict[str, Any]:
    """One cell as plain data; keys with an empty value are left out."""
    content = {
        "id": cell.cell_id,
        "seed": cell.seed,
        "error": cell.error,
        "config": plain(cell.config.as_record()) if cell.config else None,
        "result": _result(cell, domains),
        "history": _history(cell.rounds, domains),
    }
    return {key: value for key, value in content.items() if value not in (None, {})}


def _result(cell: CellRecord, domains: Sequence[str]) -> dict[str, Any] | None:
    if cell.result is None:
        return None
    return {
        "rounds": cell.result.rounds,
        "test": [share(cell.accuracy(domain)) for domain in domains],
        "own": share(cell.personal),
        "bytes": [cell.result.bytes_up, cell.result.bytes_down],
        "dropped": cell.dropped,
        "provenance": plain(cell.result.provenance.model_dump(exclude_unset=True)),
        "timing": plain(cell.result.timing.model_dump(exclude_unset=True)),
    }


def _history(records: Sequence[RoundRecord], domains: Sequence[str]) -> dict[str, Any]:
    """Columns with one value per round; columns without any value are left out."""
    rounds = [record.model_dump(exclude_unset=True) for record in records]
    tests = [record.test or {} for record in records]
    metrics = [_figures(record) for record in records]
    names = dict.fromkeys(name for values in metrics for name in values)
    test = [_column(tests, domain, share) for domain in domains]
    columns: dict[str, Any] = {
        "round": [record.round for record in records],
        "test": test if any(test) else [],
        "own": _column(rounds, "personal", share),
        "validation": _column(rounds, "validation", share),
        "up": _column(rounds, "bytes_up", count),
        "down": _column(rounds, "bytes_down", count),
        "seconds": _column(rounds, "seconds", short),
        "metrics": {name: values for name in names if (values := _column(metrics, name, short))},
    }
    return {key: values for key, values in columns.items() if values}


def _figures(record: RoundRecord) -> dict[str, float]:
    """The method's own figures and, where they are recorded, the losses."""
    losses = {f"test loss, {domain}": value for domain, value in (record.test_loss or {}).items()}
    terms = {f"training: {name}": value for name, value in (record.loss_terms or {}).items()}
    return {**losses, **terms, **record.metrics}


def _column(
    records: Sequence[Mapping[str, Any]], key: str, as_number: Callable[[object], float | None]
) -> list[float | None]:
    values = [as_number(record.get(key)) for record in records]
    return values if any(value is not None for value in values) else []
