"""Curves and heat maps over rounds: which there are, and that they show the records' numbers."""

from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image

from bench.records.reader import load_run
from reports.figures import supported, write_pictures
from reports.figures.style import COLOURS, look
from tests.kit.figures import drawn, flat, names, shades
from tests.kit.rounds import rounds, write_rounds
from tests.kit.run_folders import Planned, write_run


def convergence(run: Path, folder: Path) -> tuple[Path, Path]:
    files = {file.name: file for file in write_pictures(supported(load_run(run)), folder)}
    return files["convergence.png"], files["convergence.pdf"]


def rows_of(image: Path, colour: str) -> np.ndarray:
    """The pixel rows that hold an exact colour, left of the legend."""
    pixels = np.asarray(Image.open(image).convert("RGB"))
    pixels = pixels[:, : int(pixels.shape[1] * 0.7)]
    wanted = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return np.flatnonzero((pixels == wanted).all(axis=2).any(axis=1))


def test_curves_lie_where_their_accuracies_say(tmp_path: Path) -> None:
    levels = {"fedavg": 0.2, "fedprox": 0.4, "fedlsa": 0.8}
    cells = [flat(method, seed, level) for method, level in levels.items() for seed in range(3)]
    png, pdf = convergence(write_run(tmp_path, cells), tmp_path / "figures")
    low, middle, high = (rows_of(png, colour).mean() for colour in COLOURS[:3])
    assert high < middle < low  # rows are counted from the top
    assert (middle - high) / (low - middle) == pytest.approx(2, abs=0.1)
    assert pdf.read_bytes().startswith(b"%PDF")
    assert sorted(path.name for path in png.parent.iterdir()) == ["convergence.pdf", "convergence.png"]


def test_the_band_is_as_wide_as_the_spread_over_seeds(tmp_path: Path) -> None:
    def band(name: str, spread: float) -> int:
        cells = [flat("fedavg", seed, 0.5 + (seed - 1) * spread) for seed in range(3)]
        cells += [flat("local", 0, 0.2), flat("central", 0, 0.8)]
        png, _ = convergence(write_run(tmp_path / name, cells), tmp_path / name)
        pixels = np.asarray(Image.open(png).convert("RGB")).astype(int)
        column = pixels[:, int(pixels.shape[1] * 0.3)]
        return int(((column[:, 2] - column[:, 0]) > 20).sum())  # bluish pixels of one pixel column

    assert band("wide", 0.2) == pytest.approx(2 * band("narrow", 0.1), rel=0.1)


def test_the_same_records_give_the_same_bytes_whatever_the_users_settings(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path, [flat("fedavg", seed, 0.5) for seed in range(2)]))
    first = [path.read_bytes() for path in write_pictures(supported(run), tmp_path / "first")]
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 20}):
        second = [path.read_bytes() for path in write_pictures(supported(run), tmp_path / "second")]
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
    png, _ = convergence(write_run(tmp_path, cells), tmp_path)
    half, low, high = (rows_of(png, COLOURS[place]).mean() for place in (0, 2, 3))
    assert half == pytest.approx((low + high) / 2, abs=2)  # the unfinished 0.9 did not lift the mean
    assert rows_of(png, COLOURS[1]).size == 0


def test_a_panel_for_each_variant(tmp_path: Path) -> None:
    cells = []
    for variant in ("β=0.1", "β=0.3", "β=0.5", "β=0.7", "β=0.9"):
        cells.append(flat("fedavg", 0, 0.5))
        cells[-1].variant = variant
    png, _ = convergence(write_run(tmp_path, cells), tmp_path)
    width, height = Image.open(png).size
    assert width > 2 * height  # four across and two down


def test_a_run_without_a_finished_cell_has_no_figures(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path, [Planned("fedavg", 0)]))
    assert write_pictures(supported(run), tmp_path / "figures") == []
    assert not (tmp_path / "figures").exists()


def test_forty_methods_look_different() -> None:
    looks = [(style["color"], style["linestyle"], style["marker"]) for style in map(look, range(40))]
    assert len(set(looks)) == len(looks)


def test_accuracy_stands_over_the_bytes_sent_until_then(tmp_path: Path) -> None:
    cells = [
        Planned("local", 0, (0.2, 0.2)),
        Planned("fedavg", 0, (0.8, 0.4)),
        Planned("fedavg", 1, (0.8, 0.4)),
    ]
    run = write_run(tmp_path, cells)
    write_rounds(run, cells[0], rounds({"mnist": 0.2, "fonts": 0.2}, each=0))
    write_rounds(run, cells[1], rounds({"mnist": 0.8, "fonts": 0.4}, each=1_000_000))
    write_rounds(run, cells[2], rounds({"mnist": 0.8, "fonts": 0.4}, each=2_000_000))
    (panel,) = drawn(run, "accuracy_bytes").axes
    by_label = {str(line.get_label()): line for line in panel.get_lines()}
    assert set(by_label) == {"FedAvg", "Local (sends nothing)"}
    x, y = by_label["FedAvg"].get_data()
    assert np.allclose(x, [3.0 * r for r in range(1, 11)])  # MB, the mean of 2 and 4 a round
    assert np.allclose(y, [6.0 * r for r in range(1, 11)])
    assert np.allclose(by_label["Local (sends nothing)"].get_ydata(), 20)


def test_an_axis_of_powers_has_plain_numbers(tmp_path: Path) -> None:
    cells = [Planned("fedavg", 0, (0.5, 0.5)), Planned("fedlsa", 0, (0.6, 0.6))]
    run = write_run(tmp_path, cells)
    for cell, each in zip(cells, (500_000, 50_000_000), strict=True):
        write_rounds(run, cell, rounds({"mnist": 0.5, "fonts": 0.5}, each=each))
    figure = drawn(run, "accuracy_bytes")
    figure.canvas.draw()
    (panel,) = figure.axes
    assert panel.get_xscale() == "log"
    assert {"1", "10", "100", "1000"} <= {text.get_text() for text in panel.get_xticklabels()}


def test_metrics_of_a_group_become_a_heat_map_over_rounds(tmp_path: Path) -> None:
    cells = [Planned("fedsdg", seed, (0.5, 0.5), label="FedSDG") for seed in range(2)]
    run = write_run(tmp_path, cells)
    for cell in cells:
        gates = [
            {"gate/block_0": 0.1 * r + cell.seed, "gate/block_1": 0.2 * r + cell.seed, "alone/x": 1.0}
            for r in range(1, 4)
        ]
        lines = rounds({"mnist": 0.5, "fonts": 0.5}, 3)
        write_rounds(run, cell, [{**line, "metrics": own} for line, own in zip(lines, gates, strict=True)])
    assert names(run) == ["convergence", "accuracy_bytes", "metric_gate"]
    panel = drawn(run, "metric_gate").axes[0]
    assert np.allclose(shades(panel), [[0.6, 0.7, 0.8], [0.7, 0.9, 1.1]])
    assert [text.get_text() for text in panel.get_yticklabels()] == ["block 0", "block 1"]
