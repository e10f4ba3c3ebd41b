"""Embeddings of test samples and class anchors in two dimensions."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.errors import UserError
from bench.records.reader import Run
from bench.records.safe_archives import refuse_zip_bomb
from reports.figures.file_names import file_names
from reports.figures.picture import Picture
from reports.figures.style import COLOURS, MARKERS

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

TELLABLE = 3 * len(COLOURS)
"""With more classes than this, colours and markers would repeat, so points are grey."""


class _Projection(NamedTuple):
    points: "np.ndarray"
    """N×2"""
    labels: "np.ndarray"
    """N"""
    anchors: "np.ndarray"
    """C×2"""


def pictures(run: Run) -> Iterator[Picture]:
    """One figure per cell with a projection.npz, which is read here, before any figure is written."""
    cells = {(cell.method, cell.label, cell.variant, cell.seed): cell for cell in run.cells}
    names = file_names({key: ("projection", *key[1:3], f"s{key[3]}") for key in cells})
    for key, cell in cells.items():
        if cell.projection:
            yield Picture(names[key], partial(_draw, _read(cell.projection), cell.name))


def _read(file: Path) -> _Projection:
    import numpy as np

    try:
        refuse_zip_bomb(file)
        with np.load(file, allow_pickle=False) as arrays:
            points, labels, anchors = arrays["points"], arrays["labels"], arrays["anchors"]
        if points.shape != (len(labels), 2) or anchors.shape != (len(anchors), 2):
            raise ValueError("every point needs a label, and points and anchors need two coordinates")
        if not (np.isfinite(points).all() and np.isfinite(anchors).all()):
            raise ValueError("coordinates must be finite")
    except Exception as problem:  # of numpy, zipfile or zlib, depending on which byte is damaged
        raise UserError(f"{file} cannot be read ({problem!r}); delete it and make the report again") from None
    return _Projection(points, labels, anchors)


def _draw(projection: _Projection, title: str) -> "Figure":
    from matplotlib.figure import Figure

    points, labels, anchors = projection
    figure = Figure(figsize=(4.2, 4.0), layout="constrained")
    panel = figure.subplots()
    for label in range(len(anchors)):
        tellable = len(anchors) <= TELLABLE
        colour = COLOURS[label % len(COLOURS)] if tellable else "#9A9A9A"
        own = points[labels == label]
        marker = MARKERS[label // len(COLOURS)] if tellable else "."
        panel.scatter(own[:, 0], own[:, 1], s=9, color=colour, marker=marker, alpha=0.45, linewidths=0)
        panel.text(
            anchors[label, 0],
            anchors[label, 1],
            str(label),
            ha="center",
            va="center",
            fontsize=8,
            fontweight="bold",
            color="white" if tellable else "black",
            bbox={"boxstyle": "circle,pad=0.25", "facecolor": colour, "edgecolor": "white", "linewidth": 1.2},
        )
    panel.set_title(f"{title}: samples and class anchors")
    panel.set_aspect("equal", adjustable="datalim")
    panel.spines[:].set_visible(False)
    panel.set_xticks([])
    panel.set_yticks([])
    return figure
