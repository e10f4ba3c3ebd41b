"""The table of average ranks over suites and datasets."""

from collections.abc import Sequence

from bench.records.reader import Run
from reports.numbers.bootstrap import interquartile_mean
from reports.numbers.profiles import profiles_of
from reports.numbers.ranking import Blocks, Ranking, blocks_of, rank_runs
from reports.numbers.scores import rows_of
from reports.numbers.statistics import RESAMPLES, SIGNIFICANCE
from reports.tables.notes import row_notes, row_signs
from reports.tables.table import Entry, Footnote, Row, Table, number, probability, signed_number

NAME = "ranking"
NEAR = 1.0
"""Points behind the best method of a setting that still count as near."""
WITHIN = "Within 1 point"


def ranking_table(runs: Sequence[Run]) -> Table | None:
    """Methods by average rank; None where there is too little to rank."""
    ranking = rank_runs(runs)
    if ranking is None:
        return None
    blocks = blocks_of(runs)
    suites = ", ".join(dict.fromkeys(run.suite.name for run in runs))
    methods = {cell.label: cell.method for run in runs for cell in run.cells}
    ranked = [
        row
        for run in runs
        for variant in run.variants
        for row in rows_of(run, variant)
        if row.label in ranking.methods
    ]
    signs = {label: found for (_, label), found in row_signs(ranked).items()}
    rows = tuple(
        Row(methods[label], label, _entries(label, rank, blocks), signs=signs[label])
        for label, rank in zip(ranking.methods, ranking.average_ranks, strict=True)
    )
    return Table(
        suite=NAME,
        variant="",
        caption=f"Ranks over {suites}: by mean AVG over seeds in each of {len(blocks.names)} settings.",
        columns=("Average rank", "IQM lead", WITHIN, *blocks.names),
        sections=(rows,),
        footnotes=(*map(Footnote, _remarks(ranking)), *row_notes(ranked)),
        name=NAME,
    )


def _entries(label: str, rank: float, blocks: Blocks) -> tuple[Entry, ...]:
    average = Entry(number(rank), mean=rank, n=len(blocks.names))
    lead, (low, high) = interquartile_mean(blocks.leads(label))
    text = f"{signed_number(lead)} [{signed_number(low)}, {signed_number(high)}]"
    middle = Entry(text, mean=lead, interval=(low, high))
    share = profiles_of(blocks)[label].share_within(NEAR)
    near = Entry(f"{100 * share:.0f} %", mean=100 * share, n=len(blocks.names))
    return average, middle, near, *(Entry(number(score), mean=score) for score in blocks.scores[label])


def _remarks(ranking: Ranking) -> list[str]:
    found = "a difference" if ranking.p_value < SIGNIFICANCE else "no difference"
    p = probability(ranking.p_value)
    alike = "; ".join(", ".join(clique) for clique in ranking.cliques)
    return [
        "Only methods with a result in every setting are ranked; rank 1 is the best, ties share a rank.",
        "IQM lead: interquartile mean, over seeds and settings, of AVG minus the mean AVG of the ranked "
        f"methods in the same setting, in points; 95 % percentile bootstrap ({RESAMPLES} resamples) of the "
        "seeds within each setting.",
        f"{WITHIN}: the share of settings in which the method is at most {NEAR:g} point of mean AVG behind "
        "the best one (its performance profile at that distance; the figure has all distances).",
        f"Friedman's test finds {found} at {SIGNIFICANCE} (p {p if p.startswith('<') else f'= {p}'}); "
        f"Nemenyi's critical difference of average ranks: {number(ranking.critical_difference)}.",
        f"Not significantly different: {alike}." if alike else "All methods differ significantly.",
    ]
