"""Heat maps over rounds of metrics that form a group, such as one gate per block."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from bench.records.reader import Run
from bench.records.schema import row_name
from reports.figures.file_names import file_names
from reports.figures.heat import draw_heat
from reports.figures.panels import panels
from reports.figures.picture import Picture
from reports.numbers.history import mean_over_seeds, metric_groups, metrics_by_round
from reports.numbers.scores import rows_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Series = dict[str, dict[int, float]]
"""Member of the group → round → mean over the finished seeds."""


def pictures(run: Run) -> Iterator[Picture]:
    found: dict[str, dict[str, Series]] = {}
    for title, series in _means(run):
        for group, members in metric_groups(list(series)).items():
            shown = {name.partition("/")[2]: series[name] for name in members if series[name]}
            if shown:
                found.setdefault(group, {})[title] = shown
    names = file_names({group: ("metric", group) for group in found})
    for group, by_title in found.items():
        yield Picture(names[group], partial(_draw, group, by_title))


def _means(run: Run) -> Iterator[tuple[str, Series]]:
    for variant in run.variants:
        for row in rows_of(run, variant):
            by_seed = [metrics_by_round(cell) for cell in row.cells if cell.result]
            names = dict.fromkeys(name for metrics in by_seed for name in metrics)
            having = {name: [metrics[name] for metrics in by_seed if name in metrics] for name in names}
            means = {name: mean_over_seeds(series) for name, series in having.items()}
            yield row_name(row.label, variant), means


def _draw(group: str, by_title: dict[str, Series]) -> "Figure":
    most = max(len(series) for series in by_title.values())
    figure, shown = panels(list(by_title), size=(4.2, max(2.2, 0.22 * most + 1)), share_y=False, margin=0.6)
    for panel, series in zip(shown, by_title.values(), strict=True):
        numbers = sorted(set().union(*series.values()))
        values = [[by_round.get(number, float("nan")) for number in numbers] for by_round in series.values()]
        draw_heat(panel, values, _readable(list(series)), list(map(str, numbers)), group.replace("_", " "))
        panel.set_xlabel("Round")
    return figure


def _readable(members: Sequence[str]) -> list[str]:
    return [member.replace("_", " ") for member in members]
