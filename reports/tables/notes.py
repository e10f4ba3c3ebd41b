"""The footnotes of a table: what its signs mean, and what is missing from it."""

from collections.abc import Sequence

from bench.records.reader import CellRecord
from reports.numbers.convergence import FEWEST_ROUNDS, SMALLEST_RISE, trend
from reports.numbers.scores import RowKey, RowScores, references_of
from reports.numbers.statistics import FEWEST_SEEDS, FEWEST_TESTED, SIGNIFICANCE
from reports.tables.columns import DIFFERS, NOT_AHEAD
from reports.tables.table import Footnote, Row

AS_PUBLISHED = "†"
UNVERIFIED = "‡"
IMPROVING = "↑"
AT_BOUND = "⊣"
AVERAGE = "the unweighted mean over the domains, over the seeds with results on every domain."


def footnotes_for(rows: Sequence[RowScores], table_rows: Sequence[Row], reference: str) -> list[Footnote]:
    """Explanations of the signs in use, then what failed, is unfinished or is not finite."""
    footnotes = sign_notes(table_rows, reference)
    if all(len(row.cells) < FEWEST_TESTED for row in rows):
        footnotes.append(
            Footnote(
                f"Too few seeds for stars: tests need at least {FEWEST_TESTED}, intervals {FEWEST_SEEDS}."
            )
        )
    return footnotes + _gaps(rows)


def row_signs(rows: Sequence[RowScores]) -> dict[RowKey, tuple[str, ...]]:
    """The signs shown after the label of each row, collected over all variants."""
    signed: dict[RowKey, set[str]] = {}
    for row in rows:
        found = {
            AS_PUBLISHED: row.as_published,
            UNVERIFIED: row.unverified,
            IMPROVING: still_improving(row),
            AT_BOUND: bool(at_bound([row])),
        }
        signed.setdefault(row.key, set()).update(sign for sign, holds in found.items() if holds)
    return {key: tuple(sorted(signs)) for key, signs in signed.items()}


def still_improving(row: RowScores) -> bool:
    """Whether the row was still improving when its training ended."""
    found = trend(row)
    return found is not None and found.still_improving


def at_bound(rows: Sequence[RowScores]) -> list[str]:
    """Per row, the keys whose tuned value lies at an end of its range: `FedAvg optimiser.lr (upper)`."""
    found = {
        row.label: ", ".join(f"{key} ({end})" for key, end in ends.items())
        for row in rows
        if (ends := row.cells[0].at_bound)
    }
    return [f"{label} {ends}" for label, ends in found.items()]


def row_notes(rows: Sequence[RowScores]) -> list[Footnote]:
    """Footnotes that name the rows still improving, tuned to a bound, not checked, or of defaults, if any."""
    footnotes = []
    if rising := dict.fromkeys(row.cells[0].row for row in rows if still_improving(row)):
        footnotes.append(
            Footnote(
                f"still improving at the end: {', '.join(rising)}. A line fitted to AVG over the last fifth "
                f"of the rounds (at least {FEWEST_ROUNDS}) rises by more than its standard error over the "
                f"seeds and by more than {SMALLEST_RISE} points: longer training would change it.",
                sign=IMPROVING,
            )
        )
    if ends := at_bound(rows):
        footnotes.append(
            Footnote(
                f"tuned to an end of its search range: {'; '.join(ends)}. A better value may lie beyond; "
                "`bench tune --widen` continues the search there.",
                sign=AT_BOUND,
            )
        )
    if labels := dict.fromkeys(row.label for row in rows if row.unverified):
        text = f"the method has not passed `bench check`: {', '.join(labels)}."
        footnotes.append(Footnote(text, sign=UNVERIFIED))
    if any(row.default for row in rows):
        footnotes.append(
            Footnote(
                "(default): the same method with the suite's default hyperparameters, for comparison with "
                "its tuned row; not ranked, not tested, and not counted in the correction. The reference is "
                "tuned."
            )
        )
    if any(row.off_default for row in rows):
        footnotes.append(
            Footnote(
                "Rows in which a sweep replaced a default are neither ranked nor tested: the best of them on "
                "test is not a result of the method. Choose values by `bench tune`."
            )
        )
    return footnotes


def reference_note(rows: Sequence[RowScores]) -> list[Footnote]:
    """A footnote that says which row is the reference, if there are several candidates."""
    labels = list(dict.fromkeys(row.label for row in references_of(rows)))
    text = f"The reference is {labels[0]}, the first of the rows {', '.join(labels)}." if labels else ""
    return [Footnote(text)] if len(labels) > 1 else []


def sign_notes(table_rows: Sequence[Row], reference: str = "") -> list[Footnote]:
    """Explanations of the marks and signs in use; `reference` is what the tests compare with."""
    signs = {sign for row in table_rows for entry in row.entries for sign in entry.signs}
    signs |= {sign for row in table_rows for sign in row.signs}
    footnotes = []
    if any(entry.mark for row in table_rows for entry in row.entries):
        footnotes.append(
            Footnote(
                "Bold: best, underlined: second best federated method in each column, compared as printed."
            )
        )
    if bounds := [row.label for row in table_rows if row.bound]:
        footnotes.append(Footnote(f"Bounds, not ranked: {', '.join(bounds)}."))
    if DIFFERS in signs:
        footnotes.append(
            Footnote(
                f"significantly different from {reference} (paired t-test over the seeds' AVG, "
                f"Holm-corrected over the methods: p < {SIGNIFICANCE}, at least {FEWEST_TESTED} seeds).",
                sign=DIFFERS,
            )
        )
    if NOT_AHEAD in signs:
        footnotes.append(
            Footnote(
                "not shown to be ahead of the runner-up (paired t-test over seeds, Holm-corrected over the "
                f"methods: p ≥ {SIGNIFICANCE}, or fewer than {FEWEST_TESTED} seeds, with which nothing is "
                "tested).",
                sign=NOT_AHEAD,
            )
        )
    if AS_PUBLISHED in signs:
        footnotes.append(
            Footnote(
                "run exactly as the paper's code, which selects the best round on test; not ranked.",
                sign=AS_PUBLISHED,
            )
        )
    return footnotes + seed_notes(table_rows)


def seed_notes(table_rows: Sequence[Row]) -> list[Footnote]:
    """Explanations of the signs of entries that lack seeds."""
    signs = {sign for row in table_rows for entry in row.entries for sign in entry.signs if "/" in sign}
    counts = {sign: sign.split("/") for sign in sorted(signs)}
    return [Footnote(f"{have} of {planned} seeds.", sign=sign) for sign, (have, planned) in counts.items()]


def _gaps(rows: Sequence[RowScores]) -> list[Footnote]:
    cells = [cell for row in rows for cell in row.cells]
    notes = dict.fromkeys(note for cell in cells for note in cell.provenance.data_notes)
    footnotes = [Footnote(f"Data: {note}.") for note in notes]
    failures: dict[str, list[CellRecord]] = {}
    for cell in cells:
        if cell.error is not None:
            failures.setdefault(cell.error, []).append(cell)
    for error, failed in failures.items():
        footnotes.append(Footnote(f"Failed: {_names(failed)}: {error}"))
    if unfinished := [cell for cell in cells if cell.result is None and cell.error is None]:
        footnotes.append(Footnote(f"Not finished: {_names(unfinished)}."))
    if diverged := [f"{_names([cell])} ({cell.dropped} of {cell.replies})" for cell in cells if cell.dropped]:
        footnotes.append(
            Footnote(f"Client replies dropped because they contained NaN or infinity: {'; '.join(diverged)}.")
        )
    for row in rows:
        for cell in row.cells:
            if lost := _not_finite(cell, row.domains):
                where = f"{_names([cell])} on {', '.join(lost)}"
                footnotes.append(Footnote(f"Not finite, treated as missing: {where}."))
    return footnotes


def _not_finite(cell: CellRecord, domains: Sequence[str]) -> list[str]:
    if cell.result is None:
        return []
    lost = [domain for domain in domains if cell.accuracy(domain) is None]
    if cell.result.final.personal is not None and cell.personal is None:
        lost.append("own test data")
    return lost


def _names(cells: Sequence[CellRecord]) -> str:
    """`FedAvg seeds 0, 1; FedProx β=0.1 seed 2`."""
    seeds: dict[str, list[int]] = {}
    for cell in cells:
        seeds.setdefault(cell.row, []).append(cell.seed)
    return "; ".join(
        f"{name} seed{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
        for name, numbers in seeds.items()
    )
