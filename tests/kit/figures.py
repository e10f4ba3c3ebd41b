"""Figures of runs for the tests, drawn but not written."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.records.reader import load_run
from reports.figures.registry import supported
from reports.figures.style import house_style
from tests.kit.run_folders import Planned


def flat(method: str, seed: int, level: float, done: bool = True) -> Planned:
    """A cell whose accuracy is the same in every round."""
    curve = dict.fromkeys(range(0, 21, 5), (level, level))
    return Planned(method, seed, (level, level) if done else None, curve=curve)


def drawn(run: Path, name: str) -> Figure:
    pictures = {picture.name: picture for picture in supported(load_run(run))}
    with house_style():
        return pictures[name].draw()


def names(run: Path) -> list[str]:
    return [picture.name for picture in supported(load_run(run))]


def shades(panel: Axes) -> np.ndarray[Any, Any]:
    """The values of a heat map."""
    return np.asarray(panel.get_images()[0].get_array())
