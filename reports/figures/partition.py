"""Training samples per client and class, as bubbles whose area is the number of samples."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bench.records.reader import Run
from bench.records.schema import PartitionRecord
from reports.figures.picture import Picture
from reports.figures.style import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST = 170
"""Area of the largest bubble, in square points."""


def pictures(run: Run) -> Iterator[Picture]:
    partition = run.partition
    if partition is not None:
        yield Picture("partition", lambda: _draw(partition))


def _draw(partition: PartitionRecord) -> "Figure":
    from matplotlib.figure import Figure

    clients, classes = partition.clients, partition.classes
    most = max(max(client.counts, default=0) for client in clients) or 1
    width = min(12.0, 0.3 * len(classes) + 2.6)
    figure = Figure(figsize=(width, min(16.0, 0.28 * len(clients) + 1.2)), layout="constrained")
    panel = figure.subplots()
    # the tick labels name the domains; the colours only help the eye
    domains = list(dict.fromkeys(client.domain for client in clients))
    room = min(1.0, 12 / len(classes), 30 / len(clients))
    for row, client in enumerate(clients):
        areas = [LARGEST * room * count / most for count in client.counts]
        colour = COLOURS[domains.index(client.domain) % len(COLOURS)]
        panel.scatter(
            range(len(classes)), [row] * len(classes), s=areas, color=colour, linewidths=0, alpha=0.85
        )
    panel.set_yticks(
        range(len(clients)), [f"{client.domain} · {client.name}" for client in clients], fontsize=8
    )
    step = max(1, -(-len(classes) // 40))
    turned = any(len(name) > 3 for name in classes)
    panel.set_xticks(range(0, len(classes), step), classes[::step], fontsize=8, rotation=90 if turned else 0)
    panel.set_ylim(len(clients) - 0.4, -0.6)
    panel.set_xlim(-0.6, len(classes) - 0.4)
    if partition.setting:
        panel.set_title(f"Training samples, {partition.setting}", wrap=True)
    panel.set_xlabel(f"Class (largest bubble: {most} samples)")
    return figure
