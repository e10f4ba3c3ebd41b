"""Final AVG over the values of a setting: lines for single settings, heat maps for pairs."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench.records.reader import Run
from reports.figures.heat import draw_heat
from reports.figures.panels import LETTERS_PER_INCH, label_rows, legend, name_ticks, panels
from reports.figures.picture import Picture
from reports.figures.style import COLOURS, add_small_print, look
from reports.numbers.designs import Value, designs_of, ordered
from reports.numbers.sensitivity import Grid, Sweep, grids, key_names, sweeps
from reports.numbers.swept import value_in_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NOTES = 6
"""Lines whose other keys are named one by one."""
SHORT = 6
"""Letters of a value for which there is room beside or below a panel."""
DEFAULT = "default"
BEST = "best on test"
STAR: dict[str, Any] = {"marker": "*", "color": "white", "edgecolors": "black", "linewidths": 0.8}
NO_RULE = "The best on test only shows how much the choice matters; choose hyperparameters with `bench tune`."


def pictures(run: Run) -> Iterator[Picture]:
    return sweep_pictures([run])


def sweep_pictures(runs: Sequence[Run]) -> Iterator[Picture]:
    """The figures over all of the runs."""
    designs = designs_of(runs)
    if lines := sweeps(designs):
        yield Picture("sensitivity", lambda: _draw_lines(lines))
    if maps := grids(designs):
        yield Picture("sensitivity_grid", lambda: _draw_grids(maps))


def _draw_lines(lines: Sequence[Sweep]) -> "Figure":
    names = key_names(dict.fromkeys(sweep.parameter for sweep in lines))
    places = list(dict.fromkeys(sweep.place for sweep in lines))
    where = list(dict.fromkeys((place, key) for place in places for key in names))
    where = [at for at in where if any((sweep.place, sweep.parameter) == at for sweep in lines)]
    looks = {line: look(place) for place, line in enumerate(dict.fromkeys(sweep.line for sweep in lines))}
    longest = max(len(value_in_words(value)) for sweep in lines for value in sweep.values)
    height = 2.8 + max(0, longest - SHORT) / (2 * LETTERS_PER_INCH)  # long names are turned
    figure, shown = panels([place for place, _ in where], size=(2.8, height), share_y=len(places) == 1)
    for panel, at in zip(shown, where, strict=True):
        own = [sweep for sweep in lines if (sweep.place, sweep.parameter) == at]
        # values are spaced evenly, because they are often powers of ten and may include zero
        values = ordered(dict.fromkeys(value for sweep in own for value in sweep.values))
        for sweep in own:
            _draw_line(panel, sweep, values, looks[sweep.line])
        name_ticks(panel, [value_in_words(value) for value in values])
        panel.set_xlabel(names[at[1]])
    label_rows(shown, "Final test accuracy, AVG (%)")
    legend(figure, shown, last=(DEFAULT, BEST))
    _say(figure, _where_others_are(lines, names), any(sweep.best is not None for sweep in lines))
    return figure


def _draw_line(panel: "Axes", sweep: Sweep, values: Sequence[Value], style: Mapping[str, Any]) -> None:
    means = {value: point.mean or 0.0 for value, point in sweep.values.items()}
    seeds = [list(point.by_seed.values()) for point in sweep.values.values()]
    spreads = [statistics.stdev(each) if len(each) > 1 else 0.0 for each in seeds]
    x = [values.index(value) for value in means]
    panel.errorbar(x, list(means.values()), spreads, capsize=2, elinewidth=0.8, label=sweep.line, **style)
    if sweep.default is not None:
        at = values.index(sweep.default), means[sweep.default]
        panel.scatter(*at, s=70, marker="D", facecolors="none", edgecolors="black", zorder=3, label=DEFAULT)
    if sweep.best is not None:
        panel.scatter(values.index(sweep.best), means[sweep.best], s=80, zorder=4, label=BEST, **STAR)


def _draw_grids(maps: Sequence[Grid]) -> "Figure":
    names = key_names(dict.fromkeys(key for grid in maps for key in grid.parameters))
    longest = max(len(value_in_words(row)) for grid in maps for row, _ in grid.values)
    width = 3.4 + max(0, longest - SHORT) / LETTERS_PER_INCH
    figure, shown = panels([grid.title for grid in maps], size=(width, 3.0), share_y=False, margin=0.8)
    for panel, grid in zip(shown, maps, strict=True):
        rows, columns = draw_grid(
            panel, {at: point.mean or 0.0 for at, point in grid.values.items()}, "AVG (%)"
        )
        if grid.default is not None:
            frame_field(panel, columns.index(grid.default[1]), rows.index(grid.default[0]))
        for row, column in grid.best:
            # in a corner, beside the number
            panel.scatter(
                columns.index(column) + 0.33, rows.index(row) - 0.3, s=45, zorder=4, label=BEST, **STAR
            )
        panel.set_ylabel(names[grid.parameters[0]])
        panel.set_xlabel(names[grid.parameters[1]])
    if any(grid.default or grid.best for grid in maps):
        legend(figure, shown, last=(DEFAULT, BEST))
    _say(figure, [], any(grid.best for grid in maps))
    return figure


def draw_grid(
    panel: "Axes", values: Mapping[tuple[Value, Value], float], unit: str
) -> tuple[list[Value], list[Value]]:
    """Draw (row, column) → value, and return rows and columns in order; missing combinations stay blank."""
    rows, columns = (ordered(dict.fromkeys(at[place] for at in values)) for place in (0, 1))
    fields = [[values.get((row, column), float("nan")) for column in columns] for row in rows]
    draw_heat(panel, fields, [value_in_words(row) for row in rows], [*map(value_in_words, columns)], unit)
    return rows, columns


def frame_field(panel: "Axes", x: int, y: int) -> None:
    """A frame around the field of the default."""
    from matplotlib.patches import Rectangle

    panel.add_patch(
        Rectangle(
            (x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor=COLOURS[1], linewidth=2, zorder=3, label=DEFAULT
        )
    )


def _where_others_are(lines: Sequence[Sweep], names: Mapping[str, str]) -> list[str]:
    """The values of the keys that do not vary in a line."""
    said = list(
        dict.fromkeys(
            f"{sweep.line} over {names[sweep.parameter]}: {sweep.fixed}" for sweep in lines if sweep.fixed
        )
    )
    if len(said) <= MOST_NOTES:
        return [f"Where the other keys are: {'; '.join(said)}."] if said else []
    return ["Other keys are at their defaults, or at their best values where the default was not run."]


def _say(figure: "Figure", notes: Sequence[str], has_best: bool) -> None:
    """Small print below the figure."""
    for note in (*notes, *([NO_RULE] if has_best else [])):
        add_small_print(figure, note)
