"""Assembles columns, caption and footnotes into a table."""

from collections.abc import Mapping, Sequence

from bench.records.reader import Run
from reports.numbers.scores import BOUNDS, RowKey, RowScores, by_bounds, reference_of
from reports.published.printed import Printed, printed_numbers, threshold
from reports.tables.caption import caption
from reports.tables.columns import Column, differences, printed
from reports.tables.notes import footnotes_for, reference_note, row_notes, row_signs
from reports.tables.table import Entry, Footnote, Row, Table, number

NOT_CONCERNED = Entry("")


def assemble(
    run: Run,
    variant: str,
    rows: Sequence[RowScores],
    columns: Sequence[Column],
    remarks: Sequence[Footnote],
    described: Sequence[RowScores] = (),
    reference: str | None = None,
) -> Table:
    """The table of these rows.

    `described` are the rows that caption and footnotes are about, if they are more than `rows`;
    `reference` is what the entries' p-values compare with, if it is not the reference method.
    """
    described = described or rows
    signs = row_signs(described)
    sections = tuple(
        tuple(row_of(row, columns, signs[row.key]) for row in section) for section in by_bounds(rows)
    )
    if reference is None:
        found = reference_of(described)
        reference = found.label if found else ""
        remarks = [*remarks, *reference_note(described)]
    text, mixed = caption(run, variant, described)
    shown = [row for section in sections for row in section]
    notes = footnotes_for(described, shown, reference) + row_notes(described)
    return Table(
        suite=run.suite.name,
        variant=variant,
        caption=text,
        columns=tuple(f"{column.group} {column.heading}".strip() for column in columns),
        sections=sections,
        footnotes=(*remarks, *notes, *mixed),
        groups=tuple(column.group for column in columns) if any(column.group for column in columns) else (),
        reference=reference,
    )


def row_of(row: RowScores, columns: Sequence[Column], signs: tuple[str, ...]) -> Row:
    """A row of the table; its entries are empty in columns that do not apply to it."""
    return Row(
        method=row.method,
        label=row.label,
        entries=tuple(column.entries.get(row.key, NOT_CONCERNED) for column in columns),
        bound=row.method in BOUNDS,
        signs=signs,
    )


def printed_beside(
    run: Run, rows: Sequence[RowScores], avg: Column, heading: str, difference: str, variant: str
) -> tuple[list[Column], list[Footnote]]:
    """Columns with the printed numbers and our difference to them, and footnotes with their sources."""
    numbers, sources = printed_averages(run, {row.key: row for row in rows}, variant)
    goals = threshold_notes(run, rows, avg, variant)
    if not numbers:
        return [], goals
    beside = [printed(heading, numbers), differences(difference, avg, numbers)]
    return beside, [*sources, Footnote("Difference: ours minus printed, in percentage points."), *goals]


def threshold_notes(run: Run, rows: Sequence[RowScores], avg: Column, variant: str) -> list[Footnote]:
    """Whether rows reach what a faithful rerun should, where that is known and they have an average."""
    notes = []
    for row in rows:
        goal, mean = threshold(run.suite.name, row.method, variant), avg.entries[row.key].mean
        if goal is not None and mean is not None:
            where = f"{row.label}, {variant}" if variant else row.label
            verdict = "passed" if mean >= goal.at_least else "failed"
            notes.append(
                Footnote(
                    f"Threshold of {goal.paper}: {where} should reach {number(goal.at_least)}: "
                    f"{number(mean)}, {verdict}."
                )
            )
    return notes


def printed_averages(
    run: Run, rows: Mapping[RowKey, RowScores], variant: str
) -> tuple[dict[RowKey, float], list[Footnote]]:
    """What papers print for these rows, and where."""
    numbers: dict[RowKey, float] = {}
    papers: dict[str, str] = {}
    for key, row in rows.items():
        known = printed_numbers(run.suite.name, row.method, row.hyperparameters)
        value = _printed_average(known, variant, row.domains) if known else None
        if known and value is not None:
            numbers[key] = value
            papers[known.paper] = known.trust
    return numbers, [Footnote(f"Printed: {paper} ({trust}).") for paper, trust in papers.items()]


def _printed_average(known: Printed, variant: str, domains: Sequence[str]) -> float | None:
    """The printed AVG for a variant (`β=0.1` is a paper's column `0.1`), or of the whole suite."""
    if variant:
        return known.columns.get(variant, known.columns.get(variant.rpartition("=")[2]))
    same_domains = not known.columns or set(known.columns) == set(domains)
    return known.average if same_domains else None
