"""All kinds of figures; each decides whether the records support it."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from bench.records.reader import Run
from reports.figures import (
    accuracy_bytes,
    convergence,
    metric_groups,
    partition,
    projection,
    sensitivity,
)
from reports.figures.picture import Picture
from reports.figures.style import add_small_print
from reports.numbers.swept import main_part

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Kind = Callable[[Run], Iterable[Picture]]
KINDS: tuple[Kind, ...] = (
    convergence.pictures,
    accuracy_bytes.pictures,
    sensitivity.pictures,
    partition.pictures,
    metric_groups.pictures,
    projection.pictures,
)
OF_THE_WHOLE_SWEEP: tuple[Kind, ...] = (sensitivity.pictures, partition.pictures)


def supported(run: Run) -> list[Picture]:
    """Every figure that the records support; of a large sweep, most show only the defaults."""
    main = main_part(run)
    found = []
    for kind in KINDS:
        whole = kind in OF_THE_WHOLE_SWEEP or not main.left_out
        pictures = kind(run if whole else main.run)
        found += [
            picture if whole else Picture(picture.name, partial(_noted, picture, main.left_out))
            for picture in pictures
        ]
    return found


def _noted(picture: Picture, note: str) -> "Figure":
    figure = picture.draw()
    add_small_print(figure, note)
    return figure
