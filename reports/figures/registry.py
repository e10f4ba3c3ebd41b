"""Which figures there are; each file decides for itself whether the records support it."""

from collections.abc import Callable, Iterable

from reports.figures import (
    accuracy_bytes,
    convergence,
    metric_groups,
    partition,
    projection,
    sensitivity,
)
from reports.figures.picture import Picture, Source

KINDS: tuple[Callable[[Source], Iterable[Picture]], ...] = (
    convergence.pictures,
    accuracy_bytes.pictures,
    sensitivity.pictures,
    partition.pictures,
    metric_groups.pictures,
    projection.pictures,
)


def supported(source: Source) -> list[Picture]:
    """Every figure that these records are enough for."""
    return [picture for pictures in KINDS for picture in pictures(source)]
