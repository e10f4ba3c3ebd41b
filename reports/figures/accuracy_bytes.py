"""Test AVG against the bytes sent so far, mean over the finished seeds; one panel per variant."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bench.records.reader import Run
from reports.figures.panels import label_rows, legend, make_logarithmic, panels
from reports.figures.picture import Picture
from reports.figures.style import looks_of, say_what_is_left_out
from reports.numbers.history import average_by_round, bytes_by_round, mean_over_seeds
from reports.numbers.scores import RowScores, rows_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEGABYTE = 1e6
WIDE = 20
"""The axis is logarithmic if the most expensive method sends this many times what the cheapest does."""


def pictures(run: Run) -> Iterator[Picture]:
    finished = [cell for cell in run.cells if cell.result]
    if any(max(bytes_by_round(cell).values(), default=0) > 0 for cell in finished):
        yield Picture("accuracy_bytes", lambda: _draw(run))


def _draw(run: Run) -> "Figure":
    figure, shown = panels(run.variants)
    looks = looks_of(run)
    for panel, variant in zip(shown, run.variants, strict=True):
        first_points = [
            first
            for row in rows_of(run, variant)
            if (first := _draw_curve(panel, row, looks[row.key])) is not None
        ]
        if first_points and max(first_points) > WIDE * min(first_points):
            make_logarithmic(panel)
        panel.set_xlabel("Sent up and down (MB)")
    label_rows(shown, "Test accuracy, AVG (%)")
    legend(figure, shown)
    say_what_is_left_out(figure, run)
    return figure


def _draw_curve(panel: "Axes", row: RowScores, look: dict[str, Any]) -> float | None:
    """Draw a method and return its first x value; a method that sends nothing is a horizontal line."""
    finished = [cell for cell in row.cells if cell.result]
    accuracy = mean_over_seeds([average_by_round(cell, row.domains) for cell in finished])
    sent = mean_over_seeds([bytes_by_round(cell) for cell in finished])
    numbers = [number for number in accuracy if number in sent]
    if not numbers:
        return None
    if sent[numbers[-1]] == 0:
        level = {key: value for key, value in look.items() if not key.startswith("marker")}
        panel.axhline(accuracy[numbers[-1]], label=f"{row.label} (sends nothing)", **level)
        return None
    x = [sent[number] / MEGABYTE for number in numbers]
    every = max(1, len(numbers) // 10)
    panel.plot(x, [accuracy[number] for number in numbers], label=row.label, markevery=every, **look)
    return x[0]
