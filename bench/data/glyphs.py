"""Digits drawn from the outlines of Matplotlib's bundled fonts.

The outlines are filled here, in integers, because the output of a font engine changes between versions.
"""

import logging
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

FONTS = (
    "DejaVuSans",
    "DejaVuSans-Bold",
    "DejaVuSans-Oblique",
    "DejaVuSansMono",
    "DejaVuSansMono-BoldOblique",
    "DejaVuSerif",
    "DejaVuSerif-Bold",
    "DejaVuSerif-Italic",
    "STIXGeneral",
    "STIXGeneralBol",
    "STIXGeneralBolIta",
    "STIXGeneralItalic",
    "cmb10",
    "cmmi10",
    "cmr10",
    "cmss10",
    "cmti10",
    "cmtt10",
)
CURVE_STEPS = 6
OVERSAMPLING = 4

Point = tuple[int, int]


def digit_masks(side: int) -> np.ndarray:
    """Coverage 0 to 255 of every font's digits, (fonts, 10, side, side); digits fill the height."""
    import matplotlib
    from fontTools.ttLib import TTFont

    # Warnings about the fonts' dates, which a user can do nothing about.
    logging.getLogger("fontTools.ttLib.tables._h_e_a_d").setLevel(logging.ERROR)
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    masks = np.zeros((len(FONTS), 10, side, side), np.uint8)
    for font_index, name in enumerate(FONTS):
        with TTFont(folder / f"{name}.ttf") as font:
            glyphs, characters = font.getGlyphSet(), font.getBestCmap()
            for digit in range(10):
                edges = np.array(list(_edges(glyphs, characters[ord("0") + digit])), np.int64)
                masks[font_index, digit] = _fill(edges, side)
    return masks


def _edges(glyphs: Any, name: str) -> Iterator[tuple[Point, Point]]:
    """The outline as straight pieces, in font units times CURVE_STEPS²; a curve becomes short chords."""
    from fontTools.pens.basePen import decomposeQuadraticSegment
    from fontTools.pens.recordingPen import DecomposingRecordingPen

    pen = DecomposingRecordingPen(glyphs)
    glyphs[name].draw(pen)
    n = CURVE_STEPS
    start = here = (0, 0)
    for command, points in pen.value:
        if command == "moveTo":
            start = here = points[0]
        elif command == "lineTo":
            yield _scaled(here), _scaled(points[0])
            here = points[0]
        elif command == "qCurveTo":
            for control, end in decomposeQuadraticSegment(points):
                chain = [
                    tuple(
                        round((n - t) ** 2 * here[axis] + 2 * t * (n - t) * control[axis] + t**2 * end[axis])
                        for axis in (0, 1)
                    )
                    for t in range(n + 1)
                ]
                yield from pairwise(chain)
                here = end
        elif here != start:
            yield _scaled(here), _scaled(start)


def _scaled(point: Point) -> Point:
    return point[0] * CURVE_STEPS**2, point[1] * CURVE_STEPS**2


def _fill(edges: np.ndarray, side: int) -> np.ndarray:
    """Share of each pixel inside the outline, by counting signed crossings on an oversampled grid."""
    fine = side * OVERSAMPLING
    low, high = edges.min((0, 1)), edges.max((0, 1))
    extent = int((high - low).max())
    # Doubled coordinates, with the glyph centred in the square; sample points lie at odd multiples of extent.
    outline = (2 * edges - (low + high) + extent) * fine
    axis = (2 * np.arange(fine) + 1) * extent
    winding = np.zeros((fine, fine), np.int64)
    for (x0, y0), (x1, y1) in outline:
        direction = int(np.sign(y1 - y0))
        if direction == 0:
            continue
        rows = np.nonzero((axis >= min(y0, y1)) & (axis < max(y0, y1)))[0]
        # A sample point left of the edge is crossed by it: compare cross products, no division.
        left = (axis[None, :] - x0) * abs(y1 - y0) < (axis[rows, None] - y0) * direction * (x1 - x0)
        winding[rows] += direction * left
    inside = (winding != 0)[::-1]  # fonts count upwards
    blocks = inside.reshape(side, OVERSAMPLING, side, OVERSAMPLING).sum((1, 3))
    return np.asarray(blocks * 255 // OVERSAMPLING**2, dtype=np.uint8)
