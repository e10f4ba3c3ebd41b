"""Pictures of a run."""

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import UserError
from reports.files import replacing
from reports.records import CellRecord, Run, finite
from reports.scores import BOUNDS, Entry, entries

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with any colour vision; the line styles tell them apart without colour.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2, 1, 1.5, 1, 1.5)))
PANELS_ACROSS = 4
MARKERS = "os^DvPX"
BOUND_COLOUR = "#7F7F7F"
BOUND_DASHES = {"local": (0, (1, 2)), "central": (0, (6, 3))}

_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E5E5E5",
    "lines.linewidth": 1.5,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "text.parse_math": False,
}
_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def convergence_figure(run: Run, path_stem: Path) -> list[Path]:
    """Test AVG over rounds, mean over the finished seeds with a band of ± sample std; a panel a variant."""
    import matplotlib

    if not any(cell.result for cell in run.cells):
        raise UserError(f"No cell of {run.suite.name} has finished yet: finish it with `bench run` first.")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever style the user's own settings choose
        matplotlib.rcParams.update(_STYLE)
        figure = _draw(run)
        paths = []
        for suffix, metadata in _METADATA.items():
            path = path_stem.with_name(f"{path_stem.name}.{suffix}")
            with replacing(path) as temporary:
                figure.savefig(temporary, format=suffix, dpi=200, metadata=metadata)
            paths.append(path)
    return paths


def _draw(run: Run) -> "Figure":
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    across = min(len(run.variants), PANELS_ACROSS)
    down = math.ceil(len(run.variants) / across)
    figure = Figure(figsize=(3.6 * across + 1.4, 3.2 * down), layout="constrained")
    grid = figure.subplots(down, across, sharey=True, squeeze=False)
    panels, spare = grid.flat[: len(run.variants)], grid.flat[len(run.variants) :]
    keys = dict.fromkeys((cell.method, cell.label) for cell in run.cells if cell.method not in BOUNDS)
    places = {key: place for place, key in enumerate(keys)}
    for panel, variant in zip(panels, run.variants, strict=True):
        for entry in entries(run, variant):
            _draw_curve(panel, entry, _look(entry, places.get((entry.method, entry.label), 0)))
        panel.set_title(variant)
        panel.set_xlabel("Round")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    for panel in spare:
        panel.set_axis_off()
    for panel in grid[:, 0]:
        panel.set_ylabel("Test accuracy, AVG (%)")
    handles = {line.get_label(): line for panel in panels for line in panel.get_lines()}
    figure.legend(handles=list(handles.values()), loc="outside right upper")
    if left_out := sum(cell.result is None for cell in run.cells):
        figure.supxlabel(f"{left_out} of {len(run.cells)} cells are not finished and left out", fontsize=7)
    return figure


def _look(entry: Entry, place: int) -> dict[str, Any]:
    if entry.method in BOUNDS:
        return {"color": BOUND_COLOUR, "linestyle": BOUND_DASHES[entry.method]}
    return {
        "color": COLOURS[place % len(COLOURS)],
        "linestyle": DASHES[place % len(DASHES)],
        "marker": MARKERS[place % len(MARKERS)],
    }


def _draw_curve(panel: "Axes", entry: Entry, look: dict[str, Any]) -> None:
    curves = [_curve(cell, entry.domains) for cell in entry.cells if cell.result]
    if not curves:
        return
    # only rounds that every seed has: a mean over changing seeds would jump where one drops out
    rounds = sorted(set.intersection(*(set(curve) for curve in curves)))
    values = [[curve[number] for curve in curves] for number in rounds]
    means = [statistics.fmean(by_seed) for by_seed in values]
    panel.plot(rounds, means, label=entry.label, markersize=3.5, markevery=max(1, len(rounds) // 10), **look)
    if len(curves) > 1:
        spreads = [statistics.stdev(by_seed) for by_seed in values]
        low = [mean - spread for mean, spread in zip(means, spreads, strict=True)]
        high = [mean + spread for mean, spread in zip(means, spreads, strict=True)]
        panel.fill_between(rounds, low, high, color=look["color"], alpha=0.15, linewidth=0)


def _curve(cell: CellRecord, domains: Sequence[str]) -> dict[int, float]:
    """AVG in percent by round, where every domain has a finite value."""
    curve = {}
    for record in cell.rounds:
        test = record.get("test") or {}
        values = [value for domain in domains if (value := finite(test.get(domain))) is not None]
        if len(values) == len(domains):
            curve[record["round"]] = 100 * statistics.fmean(values)
    return curve
