"""Panels side by side under one legend."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 4


def panels(
    titles: Sequence[str], size: tuple[float, float] = (3.6, 3.2), share_y: bool = True, margin: float = 1.4
) -> tuple["Figure", list["Axes"]]:
    """A figure with a titled panel for each name, four in a row; `margin` is room for what stands beside."""
    from matplotlib.figure import Figure

    across = min(len(titles), ACROSS)
    down = math.ceil(len(titles) / across)
    figure = Figure(figsize=(size[0] * across + margin, size[1] * down), layout="constrained")
    grid = figure.subplots(down, across, sharey=share_y, squeeze=False)
    for panel, title in zip(grid.flat, titles, strict=False):
        panel.set_title(title)
    for spare in grid.flat[len(titles) :]:
        spare.set_axis_off()
    return figure, list(grid.flat[: len(titles)])


def legend(figure: "Figure", shown: Sequence["Axes"]) -> None:
    """One for all panels, a line each name."""
    handles: dict[str, object] = {}
    for panel in shown:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(handles=list(handles.values()), labels=list(handles), loc="outside right upper")


def label_rows(shown: Sequence["Axes"], text: str) -> None:
    """The y axis, named once a row."""
    for panel in shown:
        if panel.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            panel.set_ylabel(text)
