"""The table of statistics: intervals, tests, the worst domain, and the cost of reaching the reference."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.records.reader import Run
from reports.numbers.scores import BySeed, RowKey, RowScores, by_bounds, reference_of, rows_of
from reports.numbers.statistics import FEWEST_SEEDS, FEWEST_TESTED
from reports.numbers.targets import Effort, efforts
from reports.tables.assembly import row_of
from reports.tables.caption import name_of
from reports.tables.columns import Column, averages, measured, plain, summary
from reports.tables.gain_columns import TOO_FEW, gain_columns, tuning_columns
from reports.tables.notes import reference_note, row_notes, row_signs, sign_notes
from reports.tables.table import Entry, Footnote, Table, number, probability
from reports.tables.tracks import target_columns

NOT_REACHED = "not reached"
MEGABYTE = 1e6


def summary_table(run: Run, variant: str) -> Table:
    """Methods × statistics for one variant."""
    rows = rows_of(run, variant)
    reference = reference_of(rows)
    avg = averages("AVG", rows)
    columns = [Column("95 % interval", {key: _interval(entry) for key, entry in avg.entries.items()})]
    remarks = [
        f"95 % interval: Student's, of the mean AVG over seeds. Intervals need at least {FEWEST_SEEDS} "
        f"seeds, tests {FEWEST_TESTED}.",
        "p: paired t-test over the seeds' AVG, Holm-corrected over the methods.",
    ]
    columns += _tests(rows, avg)
    if reference and len(rows) > 1:
        more, explained = gain_columns(rows, reference)
        columns += more
        remarks += explained
    more, explained = tuning_columns(rows)
    columns += more
    remarks += explained
    if len(rows[0].domains) > 1:
        columns.append(measured("Worst", rows, [row.worst() for row in rows]))
        remarks.append("Worst: accuracy on the worst domain of each seed.")
        if run.kind != "domains":  # the table of domains has this column itself
            columns.append(measured("STD", rows, [row.spreads() for row in rows], lower_is_better=True))
            remarks.append("STD: standard deviation over the domains (ddof 0), lower is better.")
    if reference:
        columns += _costs(rows, reference)
        remarks.append(
            "Rounds, MB: rounds and megabytes (10⁶ bytes, up and down, all clients) until an evaluated round "
            f"first reaches the final AVG of {reference.label} at the same seed; mean over the seeds that "
            "reach it."
        )
    more, explained = target_columns(rows)
    columns += more
    remarks += explained
    columns.append(plain("Time (s)", rows, [row.seconds() for row in rows]))
    remarks.append("Time: wall-clock time of the rounds, on whichever machine ran them.")
    signs = row_signs(rows)
    sections = tuple(
        tuple(row_of(row, columns, signs[row.key]) for row in section) for section in by_bounds(rows)
    )
    shown = [row for section in sections for row in section]
    notes = [*map(Footnote, remarks), *reference_note(rows), *sign_notes(shown), *row_notes(rows)]
    return Table(
        suite=run.suite.name,
        variant=variant,
        caption=f"Statistics of {name_of(run, variant)}.",
        columns=tuple(column.heading for column in columns),
        sections=sections,
        footnotes=tuple(notes),
        name="statistics",
        reference=reference.label if reference else "",
    )


def _interval(entry: Entry) -> Entry:
    if entry.missing:
        return entry
    if entry.interval is None:
        return Entry(TOO_FEW, n=entry.n)
    low, high = entry.interval
    return Entry(f"[{number(low)}, {number(high)}]", n=entry.n, interval=entry.interval)


def _tests(rows: Sequence[RowScores], avg: Column) -> list[Column]:
    """p against the reference and against the best, for the methods that are ranked."""
    contest = [row for row in rows if row.ranked and not avg.entries[row.key].missing]
    columns = []
    reference = reference_of(contest)
    if reference and len(contest) > 1:
        others = [row.key for row in contest if row is not reference]
        entries = {key: _probability(avg.entries[key].p) for key in others}
        columns.append(Column(f"p vs {reference.label}", entries))
    if len(contest) > 1:
        best = max((row.key for row in contest), key=lambda key: avg.entries[key].mean or 0.0)
        others = [row.key for row in contest if row.key != best]
        entries = {key: _probability(avg.entries[key].p_best) for key in others}
        columns.append(Column("p vs best", {**entries, best: Entry("best")}))
    return columns


def _probability(p: float | None) -> Entry:
    return Entry(TOO_FEW) if p is None else Entry(probability(p), mean=p)


def _costs(rows: Sequence[RowScores], reference: RowScores) -> list[Column]:
    targets = reference.averages()
    found = {row.key: (row, efforts(row, targets)) for row in rows}
    rounds: dict[RowKey, Entry] = {}
    megabytes: dict[RowKey, Entry] = {}
    for key, (row, by_seed) in found.items():
        reached = {seed: effort for seed, effort in by_seed.items() if effort}
        sent = {seed: e.bytes / MEGABYTE for seed, e in reached.items() if e.bytes is not None}
        rounds[key] = _cost(row, by_seed, {seed: float(effort.round) for seed, effort in reached.items()})
        megabytes[key] = _cost(row, by_seed, sent)
    return [Column("Rounds", rounds), Column("MB", megabytes)]


def _cost(row: RowScores, by_seed: Mapping[int, Effort | None], values: BySeed) -> Entry:
    if by_seed and not any(by_seed.values()) and len(by_seed) == len(row.cells):
        return Entry(NOT_REACHED)
    entry = summary(values, len(row.cells))
    if entry.mean is None:
        return entry
    text = f"{entry.mean:.1f}" if entry.std is None else f"{entry.mean:.1f} ± {entry.std:.1f}"
    return replace(entry, text=text)
