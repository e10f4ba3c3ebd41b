"""The column of ε for rows with differential privacy, and the footnote that says what it means."""

from collections.abc import Sequence

from reports.numbers.scores import RowScores
from reports.tables.columns import Column
from reports.tables.table import Entry, Footnote, number

SAMPLING = {
    "none": "without credit for the sampling of clients",
    "poisson": "as if every client were drawn by itself with the same probability",
    "without_replacement": "with credit for samples of fixed size that stay secret",
}


def privacy_column(heading: str, rows: Sequence[RowScores]) -> Column | None:
    """ε after the last round, the largest over the seeds; None where no row has one."""
    found = {row.key: max(values) for row in rows if (values := list(row.epsilons().values()))}
    if not found:
        return None
    return Column(heading, {key: Entry(number(value), mean=value) for key, value in found.items()})


def privacy_notes(rows: Sequence[RowScores]) -> list[Footnote]:
    """What ε is about, by the hyperparameters of the rows that have one."""
    private = [row for row in rows if row.epsilons()]
    settings = dict.fromkeys(
        (row.hyperparameters.get("delta"), row.hyperparameters.get("amplification")) for row in private
    )
    if not settings:
        return []
    how = "; ".join(f"δ = {delta:g}, {SAMPLING.get(str(by), by)}" for delta, by in settings)
    return [
        Footnote(
            f"ε: differential privacy of a client with all of its data after the last round ({how}); a "
            "trusted server, which alone sees updates without noise."
        )
    ]
