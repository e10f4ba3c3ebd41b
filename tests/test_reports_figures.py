"""The convergence figure, judged by its pixels."""

from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image
from reports_builder import Planned, write_run

from bench.errors import UserError
from reports.figures import COLOURS, convergence_figure
from reports.records import load_run


def flat(method: str, seed: int, level: float, done: bool = True) -> Planned:
    """A cell whose accuracy is the same in every round."""
    curve = dict.fromkeys(range(0, 21, 5), (level, level))
    return Planned(method, seed, (level, level) if done else None, curve=curve)


def rows_of(image: Path, colour: str) -> np.ndarray:
    """The pixel rows that hold an exact colour, left of the legend."""
    pixels = np.asarray(Image.open(image).convert("RGB"))
    pixels = pixels[:, : int(pixels.shape[1] * 0.7)]
    wanted = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return np.flatnonzero((pixels == wanted).all(axis=2).any(axis=1))


def test_curves_lie_where_their_accuracies_say(tmp_path: Path) -> None:
    levels = {"fedavg": 0.2, "fedprox": 0.4, "fedlsa": 0.8}
    cells = [flat(method, seed, level) for method, level in levels.items() for seed in range(3)]
    png, pdf = convergence_figure(load_run(write_run(tmp_path, cells)), tmp_path / "figures" / "convergence")
    assert (png.name, pdf.name) == ("convergence.png", "convergence.pdf")
    low, middle, high = (rows_of(png, colour).mean() for colour in COLOURS[:3])
    assert high < middle < low  # rows are counted from the top
    assert (middle - high) / (low - middle) == pytest.approx(2, abs=0.1)
    assert pdf.read_bytes().startswith(b"%PDF")
    assert sorted(path.name for path in png.parent.iterdir()) == ["convergence.pdf", "convergence.png"]


def test_the_band_is_as_wide_as_the_spread_over_seeds(tmp_path: Path) -> None:
    def band(name: str, spread: float) -> int:
        cells = [flat("fedavg", seed, 0.5 + (seed - 1) * spread) for seed in range(3)]
        cells += [flat("local", 0, 0.2), flat("central", 0, 0.8)]
        png, _ = convergence_figure(load_run(write_run(tmp_path / name, cells)), tmp_path / name / "figure")
        pixels = np.asarray(Image.open(png).convert("RGB")).astype(int)
        column = pixels[:, int(pixels.shape[1] * 0.3)]
        return int(((column[:, 2] - column[:, 0]) > 20).sum())  # bluish pixels of one pixel column

    assert band("wide", 0.2) == pytest.approx(2 * band("narrow", 0.1), rel=0.1)


def test_the_same_records_give_the_same_bytes_whatever_the_users_settings(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path, [flat("fedavg", seed, 0.5) for seed in range(2)]))
    first = [path.read_bytes() for path in convergence_figure(run, tmp_path / "first")]
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 20}):
        second = [path.read_bytes() for path in convergence_figure(run, tmp_path / "second")]
        assert matplotlib.rcParams["axes.facecolor"] == "black"
    assert first == second
    assert b"CreationDate" not in first[1]


def test_unfinished_cells_and_values_that_are_not_finite_leave_the_rest_alone(tmp_path: Path) -> None:
    diverged = flat("fedavg", 1, 0.5)
    diverged.curve = {**diverged.curve, 20: (float("nan"), 0.5)}
    cells = [
        flat("fedavg", 0, 0.5),
        diverged,
        flat("fedavg", 2, 0.9, done=False),
        Planned("fedprox", 0, error="out of memory"),
        flat("fedproto", 0, 0.3),
        flat("fedlsa", 0, 0.7),
    ]
    png, _ = convergence_figure(load_run(write_run(tmp_path, cells)), tmp_path / "figure")
    half, low, high = (rows_of(png, COLOURS[place]).mean() for place in (0, 2, 3))
    assert half == pytest.approx((low + high) / 2, abs=2)  # the unfinished 0.9 did not lift the mean
    assert rows_of(png, COLOURS[1]).size == 0


def test_a_panel_for_each_variant(tmp_path: Path) -> None:
    cells = []
    for variant in ("β=0.1", "β=0.3", "β=0.5", "β=0.7", "β=0.9"):
        cells.append(flat("fedavg", 0, 0.5))
        cells[-1].variant = variant
    png, _ = convergence_figure(load_run(write_run(tmp_path, cells)), tmp_path / "figure")
    width, height = Image.open(png).size
    assert width > 2 * height  # four across and two down


def test_nothing_finished_says_what_to_do(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path, [Planned("fedavg", 0)]))
    with pytest.raises(UserError, match="finish it with `bench run` first"):
        convergence_figure(run, tmp_path / "figure")
    assert not list(tmp_path.glob("figure*"))
