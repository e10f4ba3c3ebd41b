"""A heat map with named rows and columns, and with its values written into it if they fit."""

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

from reports.figures.style import COLOUR_MAP

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WRITTEN = 60
"""The largest number of fields whose values are written into them."""


def draw_heat(
    panel: "Axes", values: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str], unit: str
) -> None:
    """Draw rows from the top; fields without a finite value stay blank."""
    image = panel.imshow(values, aspect="auto", cmap=COLOUR_MAP, interpolation="nearest")
    panel.grid(False)
    panel.set_yticks(range(len(rows)), rows)
    step = max(1, -(-len(columns) // 8))
    panel.set_xticks(range(0, len(columns), step), columns[::step])
    bar = panel.figure.colorbar(image, ax=panel)
    bar.set_label(unit)
    bar.outline.set_visible(False)
    if len(rows) * len(columns) > WRITTEN:
        return
    middle = sum(image.get_clim()) / 2
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            if isfinite(value):
                colour = "white" if value < middle else "black"
                panel.text(x, y, f"{value:.1f}", ha="center", va="center", color=colour, fontsize=7)
