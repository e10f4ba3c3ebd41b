"""Test AVG over rounds, mean over the finished seeds with a band of ± sample std; one panel per variant."""

import statistics
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bench.records.reader import Run
from reports.figures.panels import label_rows, legend, panels
from reports.figures.picture import Picture
from reports.figures.style import looks_of, say_what_is_left_out
from reports.numbers.history import average_by_round, mean_over_seeds
from reports.numbers.scores import RowScores, rows_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def pictures(run: Run) -> Iterator[Picture]:
    if any(cell.result for cell in run.cells):
        yield Picture("convergence", lambda: _draw(run))


def _draw(run: Run) -> "Figure":
    from matplotlib.ticker import MaxNLocator

    figure, shown = panels(run.variants)
    looks = looks_of(run)
    for panel, variant in zip(shown, run.variants, strict=True):
        for row in rows_of(run, variant):
            _draw_curve(panel, row, looks[row.key])
        panel.set_xlabel("Round")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    label_rows(shown, "Test accuracy, AVG (%)")
    legend(figure, shown)
    say_what_is_left_out(figure, run)
    return figure


def _draw_curve(panel: "Axes", row: RowScores, look: dict[str, Any]) -> None:
    curves = [average_by_round(cell, row.domains) for cell in row.cells if cell.result]
    if not curves:
        return
    means = mean_over_seeds(curves)
    every = max(1, len(means) // 10)
    panel.plot(list(means), list(means.values()), label=row.label, markevery=every, **look)
    if len(curves) > 1:
        spreads = {number: statistics.stdev(curve[number] for curve in curves) for number in means}
        low = [mean - spreads[number] for number, mean in means.items()]
        high = [mean + spreads[number] for number, mean in means.items()]
        panel.fill_between(list(means), low, high, color=look["color"], alpha=0.15, linewidth=0)
