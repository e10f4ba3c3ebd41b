"""Panels side by side under one legend."""

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 4
LETTERS_PER_INCH = 13
"""Of a title; a longer one gets several lines, so that it does not run into its neighbour."""
LONG = 24
"""Tick labels are rotated if they have more characters than this in total."""
NARROW = 100
"""Below this ratio of its limits, a logarithmic axis also has ticks between the powers of ten."""


def panels(
    titles: Sequence[str], size: tuple[float, float] = (3.6, 3.2), share_y: bool = True, margin: float = 1.4
) -> tuple["Figure", list["Axes"]]:
    """A figure with one titled panel per name, four in a row; `margin` is the width left for the legend."""
    from matplotlib.figure import Figure

    across = min(len(titles), ACROSS)
    down = math.ceil(len(titles) / across)
    figure = Figure(figsize=(size[0] * across + margin, size[1] * down), layout="constrained")
    grid = figure.subplots(down, across, sharey=share_y, squeeze=False)
    for panel, title in zip(grid.flat, titles, strict=False):
        panel.set_title(textwrap.fill(title, int(LETTERS_PER_INCH * size[0])))
    for spare in grid.flat[len(titles) :]:
        spare.set_axis_off()
    return figure, list(grid.flat[: len(titles)])


def legend(
    figure: "Figure", shown: Sequence["Axes"], title: str | None = None, last: Sequence[str] = ()
) -> None:
    """Draw one legend for all panels, with one line per name; the names in `last` come at the end."""
    handles: dict[str, object] = {}
    for panel in shown:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    handles |= {name: handles.pop(name) for name in last if name in handles}
    figure.legend(
        handles=list(handles.values()), labels=list(handles), loc="outside right upper", title=title
    )


def label_rows(shown: Sequence["Axes"], text: str) -> None:
    """Label the y axis once per row of panels."""
    for panel in shown:
        if panel.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            panel.set_ylabel(text)


def name_ticks(panel: "Axes", names: Sequence[str]) -> None:
    """Evenly spaced ticks with these names."""
    turned: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
    panel.set_xticks(range(len(names)), names, **(turned if len("".join(names)) > LONG else {}))


def make_logarithmic(panel: "Axes") -> None:
    """Make the x axis of a finished panel logarithmic, with plain numbers as tick labels."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    panel.set_xscale("log")
    low, high = panel.get_xlim()
    between = (1, 2, 5) if high < NARROW * low else (1,)
    panel.xaxis.set_major_locator(LogLocator(subs=between))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.xaxis.set_minor_formatter(NullFormatter())
