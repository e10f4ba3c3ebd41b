"""All kinds of figures; each decides whether the records support it."""

from collections.abc import Callable, Iterable

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

KINDS: tuple[Callable[[Run], Iterable[Picture]], ...] = (
    convergence.pictures,
    accuracy_bytes.pictures,
    sensitivity.pictures,
    partition.pictures,
    metric_groups.pictures,
    projection.pictures,
)


def supported(run: Run) -> list[Picture]:
    """Every figure that the records support."""
    return [picture for pictures in KINDS for picture in pictures(run)]
