"""The style of all figures: readable in print and with any colour vision."""

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bench.records.reader import Run
from reports.numbers.scores import BOUNDS, RowKey

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours. The numbers of colours, dashes and markers have no common divisor, so that no two
# of the first 280 methods look the same.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2, 1, 1.5, 1, 1.5)))
MARKERS = "os^DvPX*"
BOUND_COLOUR = "#7F7F7F"
BOUND_DASHES = {"local": (0, (1, 2)), "central": (0, (6, 3))}
SMALL_LETTERS_PER_INCH = 17
COLOUR_MAP = "cividis"
"""Perceptually uniform, so that it reads the same in grey and with any colour vision."""

_SETTINGS: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 9,
    "grid.color": "#E5E5E5",
    "lines.linewidth": 1.5,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "text.parse_math": False,
}


@contextmanager
def house_style() -> Iterator[None]:
    """Apply only the settings of this module, whatever the user has configured."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def look(place: int) -> dict[str, Any]:
    """Colour, dashes and marker of the n-th line."""
    return {
        "color": COLOURS[place % len(COLOURS)],
        "linestyle": DASHES[place % len(DASHES)],
        "marker": MARKERS[place % len(MARKERS)],
        "markersize": 3.5,
    }


def looks_of(run: Run) -> dict[RowKey, dict[str, Any]]:
    """The look of every method of a run, the same in each of its figures; bounds are grey."""
    keys = dict.fromkeys((cell.method, cell.label) for cell in run.cells)
    ranked = [key for key in keys if key[0] not in BOUNDS]
    looks = {key: look(place) for place, key in enumerate(ranked)}
    bounds = {
        key: {"color": BOUND_COLOUR, "linestyle": BOUND_DASHES[key[0]]} for key in keys if key not in looks
    }
    return looks | bounds


def say_what_is_left_out(figure: "Figure", run: Run) -> None:
    """Add a line in small print below the figure if cells have no result."""
    if left_out := sum(cell.result is None for cell in run.cells):
        add_small_print(figure, f"{left_out} of {len(run.cells)} cells are unfinished and left out")


def add_small_print(figure: "Figure", text: str) -> None:
    """Add a paragraph below the figure."""
    width = int(SMALL_LETTERS_PER_INCH * figure.get_figwidth())
    paragraphs = filter(None, (figure.get_supxlabel(), textwrap.fill(text, width)))
    figure.supxlabel("\n".join(paragraphs), fontsize=7)
