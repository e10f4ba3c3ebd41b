"""How the hyperparameters of each row were found, where rows differ in it, and the effort to a target."""

from collections.abc import Mapping, Sequence

from reports.numbers.scores import RowScores
from reports.tables.columns import MISSING_ENTRY, Column
from reports.tables.table import Entry, number

TUNED_HERE = "Tuned here?"
LEGEND = (
    f"{TUNED_HERE} yes: by a search on this suite; shared: one setting for several suites, this one "
    "included; elsewhere: a setting chosen on other suites; no: the defaults."
)


def tuned_here(row: RowScores, suite: str) -> str:
    """Whether the row's hyperparameters were chosen on this suite."""
    cell = row.cells[0]
    if cell.tuning is None or not cell.chosen:
        return "no"
    if not cell.shared_by:
        return "yes"
    return "shared" if suite in cell.shared_by else "elsewhere"


def tuned_here_column(rows: Sequence[RowScores], suite: str) -> Column | None:
    """None where all rows were tuned alike."""
    found = {row.key: tuned_here(row, suite) for row in rows}
    if len(set(found.values())) < 2 and not {"shared", "elsewhere"} & set(found.values()):
        return None
    return Column(TUNED_HERE, {key: Entry(text) for key, text in found.items()})


def target_columns(rows: Sequence[RowScores]) -> tuple[list[Column], list[str]]:
    """Rounds and megabytes of each row's search until it reached tuned FedAvg's validation accuracy."""
    chosen = {row.key: row.cells[0].chosen.get("to_target") for row in rows}
    found = {key: target for key, target in chosen.items() if isinstance(target, Mapping)}
    if not found:
        return [], []
    accuracy = next(iter(found.values())).get("accuracy")
    goal = f"{number(100 * accuracy)} %" if isinstance(accuracy, int | float) else "unknown"
    return [
        Column("Rounds to target", {key: _effort(target, "rounds") for key, target in found.items()}),
        Column("MB to target", {key: _effort(target, "megabytes") for key, target in found.items()}),
    ], [
        "Rounds, MB to target: until the best trial of the row's search first reached the validation "
        f"accuracy of tuned FedAvg ({goal}) at a measured round; –: it did not."
    ]


def _effort(target: Mapping[str, object], key: str) -> Entry:
    value = target.get(key)
    if not isinstance(value, int | float):
        return MISSING_ENTRY
    return Entry(f"{value:g}", mean=float(value))
