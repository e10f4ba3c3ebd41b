"""Runs as pandas data frames: final accuracies, curves, and sweeps. Accuracies are in percent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from bench.records.reader import CellRecord, Run
from bench.records.schema import finite
from reports.numbers.history import round_average, state_of
from reports.numbers.long_table import long_table
from reports.numbers.nesting import flat
from reports.numbers.scores import domains_of

if TYPE_CHECKING:
    import pandas as pd

IDENTITY = ("suite", "variant", "method", "label", "seed", "cell_id")
"""The columns that both frames begin with and can be joined on."""


def frame(run: Run) -> pd.DataFrame:
    """One row per cell and domain: its accuracy, and the values of the whole cell.

    `avg` is AVG over the domains and `personal` the mean over the clients on their own test data; both are
    repeated in every row of a cell, so take one row per cell before averaging them. `state` is done, failed,
    unfinished or missing; accuracies are NaN unless it is done. Hyperparameters have a column each, named
    `hyperparameters.KEY`, which is empty for methods without that key; so do swept keys, named `swept.KEY`.
    """
    import pandas as pd

    columns = [*IDENTITY, "state", "domain", "accuracy", "avg", "personal"]
    rows = [row for cell in run.cells for row in _final(run, cell)]
    found = pd.DataFrame(rows, columns=list(dict.fromkeys([*columns, *(key for row in rows for key in row)])))
    return found.astype({"seed": "int64", "accuracy": "float64", "avg": "float64", "personal": "float64"})


def curves(run: Run) -> pd.DataFrame:
    """One row per cell and round that is on record.

    `avg`, one column per domain, `personal` and `validation` are NaN in rounds that were not evaluated;
    `bytes_up`, `bytes_down` and `seconds` are totals since the start of the cell. Metrics of a method have a
    column each, named `metrics.NAME`; where losses are recorded, so do those on the test sets,
    `test_loss.DOMAIN`, and the terms of the clients' loss, `loss_terms.NAME`.
    """
    import pandas as pd

    totals = ("bytes_up", "bytes_down", "seconds")
    columns = [*IDENTITY, "round", "avg", *run.domains, "personal", "validation", *totals]
    rows = [row for cell in run.cells for row in _history(run, cell)]
    found = pd.DataFrame(rows, columns=list(dict.fromkeys([*columns, *(key for row in rows for key in row)])))
    measured = ["avg", *run.domains, "personal", "validation", "seconds"]
    whole = ["seed", "round", "bytes_up", "bytes_down"]
    return found.astype(dict.fromkeys(measured, "float64") | dict.fromkeys(whole, "int64"))


def sweep(runs: Sequence[Run]) -> pd.DataFrame:
    """One row per cell, with a column for each swept key as it was written, such as `fedlsa.lam`.

    `row` and `setting` are those before the sweep. A swept key is empty for cells that do not depend on it.
    `avg`, each domain and, where clients have models of their own, `personal` are NaN unless `state` is done.
    """
    import pandas as pd

    columns, lines = long_table(runs)
    found = pd.DataFrame(lines, columns=columns)
    measured = [name for name in columns[columns.index("avg") :] if name not in found.select_dtypes("number")]
    return found.astype({"seed": "int64", **dict.fromkeys(measured, "float64")})


def _identity(run: Run, cell: CellRecord) -> dict[str, Any]:
    values = (run.suite.name, cell.variant, cell.method, cell.label, cell.seed, cell.cell_id)
    return dict(zip(IDENTITY, values, strict=True))


def _final(run: Run, cell: CellRecord) -> Iterator[dict[str, Any]]:
    domains = domains_of(run, cell.variant)
    hyperparameters = flat({"hyperparameters": cell.hyperparameters})
    for domain in domains:
        yield {
            **_identity(run, cell),
            "state": state_of(cell),
            "domain": domain,
            "accuracy": _percent(cell.accuracy(domain)),
            "avg": _percent(cell.average(domains)),
            "personal": _percent(cell.personal),
            **hyperparameters,
            **{f"swept.{key}": value for key, value in (cell.swept.values if cell.swept else {}).items()},
        }


def _history(run: Run, cell: CellRecord) -> Iterator[dict[str, Any]]:
    domains = domains_of(run, cell.variant)
    up = down = 0
    seconds = 0.0
    for record in cell.rounds:
        up, down, seconds = up + record.bytes_up, down + record.bytes_down, seconds + record.seconds
        test = record.test or {}
        yield {
            **_identity(run, cell),
            "round": record.round,
            "avg": round_average(record, domains),
            **{domain: _percent(finite(test.get(domain))) for domain in domains},
            "personal": _percent(finite(record.personal)),
            "validation": _percent(finite(record.validation)),
            "bytes_up": up,
            "bytes_down": down,
            "seconds": seconds,
            **{f"test_loss.{name}": value for name, value in (record.test_loss or {}).items()},
            **{f"loss_terms.{name}": value for name, value in (record.loss_terms or {}).items()},
            **{f"metrics.{name}": value for name, value in record.metrics.items()},
        }


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
