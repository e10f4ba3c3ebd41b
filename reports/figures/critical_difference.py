"""Average ranks on an axis; bars join methods whose ranks differ by less than the critical difference."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from reports.figures.picture import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE = 0.32
"""Inches between the names of two methods."""


class Ranked(Protocol):
    """Methods, their average ranks in the same order, and the groups without a significant difference."""

    @property
    def methods(self) -> Sequence[str]: ...
    @property
    def average_ranks(self) -> Sequence[float]: ...
    @property
    def critical_difference(self) -> float: ...
    @property
    def p_value(self) -> float: ...
    @property
    def cliques(self) -> Sequence[Sequence[str]]: ...


def pictures(ranking: Ranked | None) -> Iterator[Picture]:
    if ranking is not None and len(ranking.methods) > 1:
        yield Picture("critical_difference", lambda: _draw(ranking))


def _draw(ranking: Ranked) -> "Figure":
    from matplotlib.figure import Figure

    ranks = dict(sorted(zip(ranking.methods, ranking.average_ranks, strict=True), key=lambda item: item[1]))
    groups = [[ranks[name] for name in group] for group in ranking.cliques if len(group) > 1]
    depth = len(groups) * 0.5 + (len(ranks) + 1) // 2 + 1
    figure = Figure(figsize=(6.4, LINE * (depth + 2.6)), layout="constrained")
    panel = figure.subplots()
    panel.set_axis_off()
    worst = len(ranks)
    margin = 0.33 * (worst - 1)
    panel.set_xlim(1 - margin, worst + margin)
    panel.set_ylim(depth, -2.6)
    _draw_scale(panel, worst, ranking)
    for place, group in enumerate(groups):
        y = 0.45 + 0.5 * place
        panel.plot(
            [min(group) - 0.02 * worst, max(group) + 0.02 * worst], [y, y], color="black", linewidth=3.5
        )
    _draw_names(panel, ranks, 0.7 + 0.5 * len(groups), margin)
    return figure


def _draw_scale(panel: "Axes", worst: int, ranking: Ranked) -> None:
    panel.plot([1, worst], [0, 0], color="black", linewidth=1)
    for rank in range(1, worst + 1):
        panel.plot([rank, rank], [0, -0.25], color="black", linewidth=1)
        panel.text(rank, -0.35, str(rank), ha="center", va="bottom", fontsize=8)
    end = 1 + ranking.critical_difference
    panel.plot([1, end], [-1.6, -1.6], color="black", linewidth=1.5, marker="|")
    text = f"critical difference {ranking.critical_difference:.2f}, Friedman p = {ranking.p_value:.2g}"
    panel.text(1, -1.8, text, ha="left", va="bottom", fontsize=8)


def _draw_names(panel: "Axes", ranks: dict[str, float], top: float, margin: float) -> None:
    """The better half on the left, best at the top; the other half on the right, worst at the top."""
    names = list(ranks)
    left, right = names[: (len(names) + 1) // 2], names[(len(names) + 1) // 2 :][::-1]
    for side, column in (("left", left), ("right", right)):
        edge = 1 - 0.25 * margin if side == "left" else len(names) + 0.25 * margin
        for place, name in enumerate(column):
            rank, y = ranks[name], top + place
            panel.plot([rank, rank, edge], [0, y, y], color="#555555", linewidth=0.8)
            text = f"{name}  {rank:.2f} " if side == "left" else f" {rank:.2f}  {name}"
            panel.text(edge, y, text, ha="right" if side == "left" else "left", va="center", fontsize=9)
