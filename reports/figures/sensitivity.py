"""Final AVG over the values of a setting: lines for single settings, heat maps for pairs."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bench.records.reader import Run
from reports.figures.heat import draw_heat
from reports.figures.panels import label_rows, legend, panels
from reports.figures.picture import Picture
from reports.figures.style import look
from reports.numbers.sensitivity import Grid, Sweep, grids, mean, sweeps, symbol

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def pictures(run: Run) -> Iterator[Picture]:
    if lines := sweeps(run):
        yield Picture("sensitivity", lambda: _draw_lines(lines))
    if maps := grids(run):
        yield Picture("sensitivity_grid", lambda: _draw_grids(maps))


def _draw_lines(lines: Sequence[Sweep]) -> "Figure":
    parameters = list(dict.fromkeys(sweep.parameter for sweep in lines))
    places = {line: place for place, line in enumerate(dict.fromkeys(sweep.line for sweep in lines))}
    figure, shown = panels([""] * len(parameters), size=(2.8, 2.8))
    for panel, parameter in zip(shown, parameters, strict=True):
        own = [sweep for sweep in lines if sweep.parameter == parameter]
        # values are spaced evenly, because they are often powers of ten and may include zero
        values = sorted({value for sweep in own for value in sweep.values})
        for sweep in own:
            x = [values.index(value) for value in sweep.values]
            spreads = [statistics.stdev(s.values()) if len(s) > 1 else 0.0 for s in sweep.values.values()]
            means = [mean(by_seed) for by_seed in sweep.values.values()]
            style = look(places[sweep.line])
            panel.errorbar(x, means, spreads, capsize=2, elinewidth=0.8, label=sweep.line, **style)
        panel.set_xticks(range(len(values)), [f"{value:g}" for value in values])
        panel.set_xlabel(symbol(parameter))
    label_rows(shown, "Final test accuracy, AVG (%)")
    legend(figure, shown)
    return figure


def _draw_grids(maps: Sequence[Grid]) -> "Figure":
    figure, shown = panels([grid.line for grid in maps], size=(3.4, 3.0), share_y=False, margin=0.8)
    for panel, grid in zip(shown, maps, strict=True):
        draw_grid(panel, {at: mean(by_seed) for at, by_seed in grid.values.items()}, "AVG (%)")
        panel.set_ylabel(symbol(grid.parameters[0]))
        panel.set_xlabel(symbol(grid.parameters[1]))
    return figure


def draw_grid(panel: "Axes", values: Mapping[tuple[float, float], float], unit: str) -> None:
    """Draw (row, column) → value, both ascending; missing combinations stay blank."""
    rows, columns = (sorted({at[place] for at in values}) for place in (0, 1))
    fields = [[values.get((row, column), float("nan")) for column in columns] for row in rows]
    draw_heat(panel, fields, [f"{row:g}" for row in rows], [f"{column:g}" for column in columns], unit)
