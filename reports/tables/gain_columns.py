"""Columns about the gain over the reference, and about the gain of tuning."""

from collections.abc import Mapping, Sequence

from bench.records.schema import DEFAULT_ROW
from reports.numbers.gains import Gain, gains_over
from reports.numbers.power import POWER
from reports.numbers.scores import RowKey, RowScores
from reports.numbers.statistics import RESAMPLES, SIGNIFICANCE
from reports.tables.columns import MISSING_ENTRY, Column, gain
from reports.tables.table import Entry, number, signed_number

TOO_FEW = "too few seeds"


def gain_columns(rows: Sequence[RowScores], reference: RowScores) -> tuple[list[Column], list[str]]:
    """Interval of Δ, probability of improvement, smallest detectable difference; and what they mean."""
    found = gains_over(reference, rows)
    others = [row for row in rows if row.key != reference.key]
    columns = [
        Column("Δ 95 % interval", {row.key: _interval(row, found) for row in others}),
        Column(f"P(> {reference.label})", {row.key: _improvement(row, found) for row in others}),
        Column("Detectable", {row.key: _detectable(row, found) for row in others}),
    ]
    return columns, [
        _interval_note(rows, reference, found),
        f"P(> {reference.label}): how often a run of the method beats a run of {reference.label}, over all "
        "pairs of seeds, ties counted half; 95 % percentile bootstrap over the seeds of both.",
        f"Detectable: the smallest true difference from {reference.label} that so many seeds would show with "
        f"a probability of {100 * POWER:.0f} %, in points: λ·s/√n with the sample standard deviation s of "
        f"the n seeds' differences and the noncentrality λ at which a paired t-test (two-sided, "
        f"{SIGNIFICANCE}, uncorrected) has that power.",
    ]


def tuning_columns(rows: Sequence[RowScores]) -> tuple[list[Column], list[str]]:
    """What tuning gained, if rows of default hyperparameters stand beside tuned ones."""
    defaults = {row.label.removesuffix(DEFAULT_ROW): row for row in rows if row.default}
    pairs = {row.key: (row, defaults[row.label]) for row in rows if row.label in defaults}
    if not pairs:
        return [], []
    entries = {key: gain(tuned, default, RowScores.averages) for key, (tuned, default) in pairs.items()}
    return [Column("Tuning", entries)], [
        "Tuning: AVG with tuned minus AVG with default hyperparameters, mean ± sample std over the seeds "
        "that both have."
    ]


def _interval(row: RowScores, found: Mapping[RowKey, Gain]) -> Entry:
    if (known := found.get(row.key)) is None:
        return _without(row)
    low, high = known.interval
    return Entry(f"[{signed_number(low)}, {signed_number(high)}]", n=known.seeds, interval=known.interval)


def _improvement(row: RowScores, found: Mapping[RowKey, Gain]) -> Entry:
    if (known := found.get(row.key)) is None:
        return _without(row)
    low, high = known.improvement_interval
    text = f"{number(known.improvement)} [{number(low)}, {number(high)}]"
    return Entry(text, mean=known.improvement, n=known.seeds, interval=known.improvement_interval)


def _detectable(row: RowScores, found: Mapping[RowKey, Gain]) -> Entry:
    if (known := found.get(row.key)) is None:
        return _without(row)
    return Entry(number(known.detectable), mean=known.detectable, n=known.seeds)


def _without(row: RowScores) -> Entry:
    return Entry(TOO_FEW) if row.averages() else MISSING_ENTRY


def _interval_note(rows: Sequence[RowScores], reference: RowScores, found: Mapping[RowKey, Gain]) -> str:
    what = f"Δ 95 % interval: of AVG minus the AVG of {reference.label}, percentile bootstrap"
    widened = (
        f"{RESAMPLES} resamples; the spread over n seeds is widened by √(n/(n−1))·t/z, since resampling few "
        "of them gives too narrow an interval."
    )
    alone = [row.label for row in rows if row.key in found and not found[row.key].sampled]
    if alone and len(alone) == len(found):
        return (
            f"{what} over the seeds alone, because the predictions on the test samples were not kept: the "
            f"luck of the test samples is not covered. {widened}"
        )
    text = (
        f"{what} on two levels: seeds, then the test samples of each domain, the same for both methods and "
        "for all seeds that are tested on them; so it covers the luck of the training and of the test "
        f"samples. {widened}"
    )
    if alone:
        text += f" Over the seeds alone, because predictions were not kept: {', '.join(alone)}."
    return text
