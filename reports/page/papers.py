"""Our accuracies next to those printed in papers, for the same suite, method and column."""

import statistics
from collections.abc import Mapping
from typing import Any

from bench.records.reader import Run
from reports.numbers.scores import BySeed, RowScores, rows_of
from reports.page.numbers import short
from reports.published.printed import printed_numbers

AVERAGE = "AVG"


def paper_content(
    run: Run, lines: Mapping[tuple[str, str], int], variants: Mapping[str, int]
) -> dict[str, Any] | None:
    """Pairs of numbers and the papers they are from; None if no paper prints anything for this suite."""
    pairs = []
    sources: dict[str, str] = {}
    for variant in variants:
        for row in rows_of(run, variant):
            known = printed_numbers(run.suite.name, row.method, row.hyperparameters)
            if known is None:
                continue
            sources[known.paper] = known.trust
            for column, printed, ours in _columns(row, variant, known.columns, known.average):
                pairs.append(
                    {
                        "line": lines[row.method, row.label],
                        "variant": variants[variant],
                        "column": column,
                        "printed": printed,
                        "ours": short(statistics.fmean(ours.values()), 6),
                        "std": short(statistics.stdev(ours.values()), 6) if len(ours) > 1 else None,
                        "n": len(ours),
                    }
                )
    return {"pairs": pairs, "sources": sources} if pairs else None


def _columns(
    row: RowScores, variant: str, columns: Mapping[str, float | None], average: float | None
) -> list[tuple[str, float, BySeed]]:
    """Column, printed number and our numbers, for columns that both have."""
    printed = dict(columns)
    if variant:  # `β=0.1` is a paper's column `0.1`
        found = [(AVERAGE, printed.get(variant, printed.get(variant.rpartition("=")[2])), row.averages())]
    else:
        same_domains = not printed or set(printed) == set(row.domains)
        found = [(AVERAGE, average if same_domains else None, row.averages())]
        found += [(domain, printed.get(domain), row.on_domain(domain)) for domain in row.domains]
    return [(column, value, ours) for column, value, ours in found if value is not None and ours]
