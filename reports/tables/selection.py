"""The table of selection rules: which round of the training stands for a row."""

from bench.records.reader import Run
from reports.numbers.scores import by_bounds, rows_of
from reports.tables.assembly import row_of
from reports.tables.caption import name_of
from reports.tables.columns import measured, plain
from reports.tables.notes import row_notes, row_signs, sign_notes
from reports.tables.table import Footnote, Table

NAME = "selection"


def selection_table(run: Run, variant: str) -> Table:
    """Methods × selection rules, the AVG by each, for one variant."""
    rows = rows_of(run, variant)
    columns = [
        measured("Final", rows, [row.final() for row in rows]),
        measured("Last 5", rows, [row.last_five() for row in rows]),
    ]
    shown_elsewhere = ", which the other tables show"
    if any(row.chosen_rounds() for row in rows):
        shown_elsewhere = "; the other tables show the one that early stopping chose"
    remarks = [
        f"Final: the last round{shown_elsewhere}. Last 5: mean of the last five evaluated rounds.",
    ]
    by_validation = [row.best_on_validation() for row in rows]
    if any(by_validation):
        held_out = [(row, found) for row, found in zip(rows, by_validation, strict=True) if found]
        columns.append(
            measured("Best on validation", [row for row, _ in held_out], [found for _, found in held_out])
        )
        remarks.append(
            "Best on validation: the evaluated round with the highest accuracy on samples held out from the "
            "clients' training data, the earliest if there are several."
        )
    columns.append(plain("Oracle (do not compare)", rows, [row.oracle() for row in rows]))
    remarks.append(
        "Oracle: the best round on test, which cannot be known in advance; not to be compared with the other "
        "columns, nor with other papers' final rounds."
    )
    signs = row_signs(rows)
    sections = tuple(
        tuple(row_of(row, columns, signs[row.key]) for row in section) for section in by_bounds(rows)
    )
    shown = [row for section in sections for row in section]
    return Table(
        suite=run.suite.name,
        variant=variant,
        caption=f"Selection rules of {name_of(run, variant)}: AVG in percent by the round that is chosen.",
        columns=tuple(column.heading for column in columns),
        sections=sections,
        footnotes=(*map(Footnote, remarks), *sign_notes(shown), *row_notes(rows)),
        name=NAME,
    )
