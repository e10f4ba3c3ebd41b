"""The trials of a search: validation accuracy over each searched key, and a heat map for a grid of two."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from reports.figures.panels import label_rows, legend, make_logarithmic, name_ticks, panels
from reports.figures.picture import Picture
from reports.figures.sensitivity import draw_grid, frame_field
from reports.figures.style import COLOURS
from reports.numbers.designs import Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEWEST = 2
"""The smallest number of trials that can be compared."""
UNIT = "Validation accuracy (%)"
TRIAL: dict[str, Any] = {"color": COLOURS[0], "s": 22, "alpha": 0.75, "linewidths": 0, "label": "trial"}
DEFAULT: dict[str, Any] = {"color": COLOURS[1], "s": 34, "marker": "D", "zorder": 3, "label": "default"}


@dataclass(frozen=True)
class SearchedKey:
    """A hyperparameter, the kind of range it was drawn from, and its default in the suite."""

    name: str
    kind: Literal["uniform", "log_uniform", "int", "choice"]
    default: Any
    choices: tuple[Any, ...] = ()
    """The options, for the kind `choice`."""


@dataclass(frozen=True)
class Tried:
    """A configuration that completed all rounds."""

    values: Mapping[str, Any]
    """The value of each searched key."""
    accuracy: float
    """Validation accuracy in percent."""
    is_default: bool


@dataclass(frozen=True)
class Trials:
    """The outcome of a search for one method."""

    method: str
    keys: Sequence[SearchedKey]
    tried: Sequence[Tried]
    left_out: int
    """Trials that did not complete all rounds."""


def pictures(trials: Trials) -> Iterator[Picture]:
    if trials.keys and len(trials.tried) >= FEWEST:
        yield Picture("sensitivity", lambda: _draw(trials))


def _draw(trials: Trials) -> "Figure":
    grid = _grid(trials)
    number = len(trials.keys) + (1 if grid else 0)
    figure, shown = panels([""] * number, size=(2.8, 2.8), share_y=False)
    alone = shown[: len(trials.keys)]
    for panel, key in zip(alone, trials.keys, strict=True):
        if panel is not alone[0]:
            panel.sharey(alone[0])
        _draw_key(panel, key, trials.tried)
    label_rows(alone, UNIT)
    legend(figure, alone, title=trials.method)
    if grid:
        _draw_heat(shown[-1], grid, trials.keys)
    if trials.left_out:
        everything = len(trials.tried) + trials.left_out
        figure.supxlabel(
            f"{trials.left_out} of {everything} trials did not complete all rounds and are left out",
            fontsize=7,
        )
    return figure


def _draw_key(panel: "Axes", key: SearchedKey, tried: Sequence[Tried]) -> None:
    place = _options(key).index if key.kind == "choice" else float
    shown = [trial for trial in tried if _fits(key, trial.values[key.name])]
    for is_default, look in ((False, TRIAL), (True, DEFAULT)):
        own = [trial for trial in shown if trial.is_default == is_default]
        panel.scatter(
            [place(trial.values[key.name]) for trial in own], [trial.accuracy for trial in own], **look
        )
    panel.set_xlabel(key.name)
    if _fits(key, key.default):
        panel.axvline(place(key.default), color=COLOURS[1], linewidth=0.8, linestyle=":")
    else:
        panel.set_xlabel(f"{key.name}\n(default {_text(key.default)} is not on this axis)")
    _make_axis(panel, key)


def _make_axis(panel: "Axes", key: SearchedKey) -> None:
    from matplotlib.ticker import MaxNLocator

    if key.kind == "choice":
        options = _options(key)
        name_ticks(panel, [_text(option) for option in options])
        panel.set_xlim(-0.5, len(options) - 0.5)
    elif key.kind == "log_uniform":
        make_logarithmic(panel)
    elif key.kind == "int":
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))


def _draw_heat(panel: "Axes", grid: Mapping[tuple[Value, Value], float], keys: Sequence[SearchedKey]) -> None:
    rows, columns = keys
    draw_grid(panel, grid, UNIT)
    panel.set_ylabel(rows.name)
    panel.set_xlabel(columns.name)
    if all(key.default in key.choices for key in keys):
        y, x = (sorted(key.choices).index(key.default) for key in keys)
        frame_field(panel, x, y)


def _grid(trials: Trials) -> dict[tuple[Value, Value], float] | None:
    """Values of two numeric keys → accuracy, if all combinations of their choices were tried."""
    if len(trials.keys) != 2 or not all(_has_numbers_to_choose(key) for key in trials.keys):
        return None
    combinations = list(product(*(key.choices for key in trials.keys)))
    grid: dict[tuple[Value, Value], float] = {}
    for trial in trials.tried:
        first, second = (trial.values[key.name] for key in trials.keys)
        if (first, second) in combinations:
            grid[first, second] = trial.accuracy
    return grid if all(at in grid for at in combinations) else None


def _has_numbers_to_choose(key: SearchedKey) -> bool:
    return key.kind == "choice" and all(map(_is_number, key.choices))


def _options(key: SearchedKey) -> list[Any]:
    """The choices, plus the default if it is not among them; numbers ascending."""
    options = [*key.choices, *([] if key.default in key.choices else [key.default])]
    return sorted(options) if all(map(_is_number, options)) else options


def _text(value: Any) -> str:
    return f"{value:g}" if _is_number(value) else "none" if value is None else str(value)


def _fits(key: SearchedKey, value: Any) -> bool:
    """Whether the value can be shown on the axis; the default of a suite may lie outside a range."""
    return key.kind == "choice" or (_is_number(value) and (key.kind != "log_uniform" or value > 0))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
