"""Figures: which there are for given records, and that they show these records' numbers."""

import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from bench.errors import UserError
from bench.records.reader import load_run
from kit.rounds import rounds, write_partition, write_rounds
from kit.run_folders import Planned, write_run
from reports.figures import write_figures, write_ranking
from reports.figures.critical_difference import pictures as ranking_pictures
from reports.figures.registry import supported
from reports.figures.style import COLOURS, house_style, look
from reports.figures.trials import SearchedKey, Trials, Tried
from reports.figures.trials import pictures as trial_pictures
from reports.numbers.sensitivity import grids, sweeps


def flat(method: str, seed: int, level: float, done: bool = True) -> Planned:
    """A cell whose accuracy is the same in every round."""
    curve = dict.fromkeys(range(0, 21, 5), (level, level))
    return Planned(method, seed, (level, level) if done else None, curve=curve)


def convergence(run: Path, folder: Path) -> tuple[Path, Path]:
    files = {file.name: file for file in write_figures(load_run(run), folder)}
    return files["convergence.png"], files["convergence.pdf"]


def drawn(run: Path, name: str) -> Figure:
    pictures = {picture.name: picture for picture in supported(load_run(run))}
    with house_style():
        return pictures[name].draw()


def names(run: Path) -> list[str]:
    return [picture.name for picture in supported(load_run(run))]


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
    first = [path.read_bytes() for path in write_figures(run, tmp_path / "first")]
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 20}):
        second = [path.read_bytes() for path in write_figures(run, tmp_path / "second")]
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
    assert write_figures(run, tmp_path / "figures") == []
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


def sensitivity_run(path: Path, together: bool) -> Path:
    """λ and α of a method whose AVG is 100·(λ + α/100); all combinations, or one at a time."""
    pairs = [(lam, alpha) for lam in (0.1, 0.3, 0.5) for alpha in (1, 2, 4)]
    pairs = [pair for pair in pairs if together or pair[0] == 0.3 or pair[1] == 2]
    cells = []
    for lam, alpha in pairs:
        for seed in range(2):
            level = lam + alpha / 100 + (seed - 0.5) / 50
            hyperparameters = {"lam": lam, "alpha": alpha, "separation": True}
            variant = f"λ={lam} α={alpha}"
            cells.append(
                Planned("fedlsa", seed, (level, level), variant=variant, hyperparameters=hyperparameters)
            )
    return write_run(path, cells, kind="variants")


def test_a_setting_that_varies_alone_becomes_a_line(tmp_path: Path) -> None:
    run = sensitivity_run(tmp_path, together=False)
    found = {sweep.parameter: sweep for sweep in sweeps(load_run(run))}
    assert set(found) == {"lam", "alpha"} and not grids(load_run(run))
    assert {value: dict(own) for value, own in found["lam"].values.items()} == {
        lam: {0: pytest.approx(100 * lam + 1), 1: pytest.approx(100 * lam + 3)} for lam in (0.1, 0.3, 0.5)
    }
    figure = drawn(run, "sensitivity")
    assert [panel.get_xlabel() for panel in figure.axes] == ["λ", "α"]
    assert [text.get_text() for text in figure.axes[1].get_xticklabels()] == ["1", "2", "4"]
    assert np.allclose(figure.axes[1].containers[0].lines[0].get_ydata(), [31, 32, 34])
    assert "sensitivity_grid" not in names(run)


def test_two_settings_that_vary_together_become_a_heat_map(tmp_path: Path) -> None:
    run = sensitivity_run(tmp_path, together=True)
    (grid,) = grids(load_run(run))
    assert grid.parameters == ("lam", "alpha") and len(grid.values) == 9
    panel = drawn(run, "sensitivity_grid").axes[0]
    expected = [[100 * lam + alpha for alpha in (1, 2, 4)] for lam in (0.1, 0.3, 0.5)]
    assert np.allclose(panel.get_images()[0].get_array(), expected)
    lines = {sweep.line for sweep in sweeps(load_run(run)) if sweep.parameter == "lam"}
    assert lines == {"FedLSA, α=1", "FedLSA, α=2", "FedLSA, α=4"}


def test_methods_that_differ_in_nothing_have_no_sensitivity(tmp_path: Path) -> None:
    assert names(write_run(tmp_path, [flat("fedavg", 0, 0.5), flat("fedlsa", 0, 0.6)])) == ["convergence"]


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
    assert np.allclose(panel.get_images()[0].get_array(), [[0.6, 0.7, 0.8], [0.7, 0.9, 1.1]])
    assert [text.get_text() for text in panel.get_yticklabels()] == ["block 0", "block 1"]


def test_bubbles_are_as_large_as_the_counts(tmp_path: Path) -> None:
    run = write_run(tmp_path, [flat("fedavg", 0, 0.5)])
    write_partition(run, {"mnist 0": [10, 40, 0], "fonts 1": [20, 0, 5]})
    (panel,) = drawn(run, "partition").axes
    first, second = (points.get_sizes() for points in panel.collections)
    assert np.allclose(first / first[0], [1, 4, 0]) and np.allclose(second / first[0], [2, 0, 0.5])
    assert [text.get_text() for text in panel.get_yticklabels()] == ["mnist · 0", "fonts · 1"]


def test_a_partition_is_named_after_its_setting(tmp_path: Path) -> None:
    run = write_run(tmp_path, [flat("fedavg", 0, 0.5)])
    write_partition(run, {"mnist 0": [10, 40]})
    assert drawn(run, "partition").axes[0].get_title() == ""
    content = json.loads((run / "partition.json").read_text())
    (run / "partition.json").write_text(json.dumps(content | {"setting": "β=0.1 seed 0"}))
    assert drawn(run, "partition").axes[0].get_title() == "Training samples, β=0.1 seed 0"


@pytest.mark.parametrize(
    "text", ["{", '{"classes": ["a"], "clients": [{"name": 0, "domain": "", "counts": []}]}']
)
def test_a_damaged_partition_file_is_a_plain_error(tmp_path: Path, text: str) -> None:
    run = write_run(tmp_path, [flat("fedavg", 0, 0.5)])
    (run / "partition.json").write_text(text)
    with pytest.raises(UserError, match=r"partition\.json (cannot be read|is not valid JSON)"):
        load_run(run)


def test_a_projection_shows_points_and_anchors(tmp_path: Path) -> None:
    cell = flat("fedlsa", 0, 0.5)
    run = write_run(tmp_path, [cell])
    points, anchors = np.array([[0.0, 1], [2, 3], [4, 5]]), np.array([[1.0, 0], [0, 1]])
    np.savez(run / cell.dir / "projection.npz", points=points, labels=np.array([0, 1, 1]), anchors=anchors)
    (panel,) = drawn(run, "projection_fedlsa_s0").axes
    assert [np.asarray(own.get_offsets()).tolist() for own in panel.collections] == [
        [[0, 1]],
        [[2, 3], [4, 5]],
    ]
    assert [text.get_position() for text in panel.texts] == [(1, 0), (0, 1)]


def damaged(file: Path, damage: str) -> None:
    arrays = {"points": np.zeros((3, 2)), "labels": np.zeros(3), "anchors": np.zeros((2, 2))}
    if damage == "an array is missing":
        del arrays["anchors"]
    if damage == "a label is missing":
        arrays["labels"] = np.zeros(2)
    np.savez(file, **arrays)
    whole = file.read_bytes()
    if damage == "empty":
        file.write_bytes(b"")
    if damage == "cut off":
        file.write_bytes(whole[: len(whole) // 2])
    if damage == "a byte is wrong":
        file.write_bytes(whole.replace(b"fortran", b"f0rtran"))
    if damage == "text":
        file.write_text("nothing of the kind")


@pytest.mark.parametrize(
    "damage", ["empty", "text", "cut off", "a byte is wrong", "an array is missing", "a label is missing"]
)
def test_a_damaged_projection_is_a_plain_error_before_any_figure(tmp_path: Path, damage: str) -> None:
    cell = flat("fedlsa", 0, 0.5)
    run = write_run(tmp_path, [cell])
    file = run / cell.dir / "projection.npz"
    damaged(file, damage)
    with pytest.raises(UserError, match=r"projection\.npz cannot be read .*: delete it and make the report"):
        write_figures(load_run(run), tmp_path / "figures")
    assert not (tmp_path / "figures").exists()


def drawn_trials(*keys: SearchedKey, tried: Any, left_out: int = 0) -> Figure:
    """Of a search whose first configuration is the default, with accuracies 50, 51, …"""
    all_tried = [
        Tried(dict(zip((key.name for key in keys), values, strict=True)), 50.0 + place, place == 0)
        for place, values in enumerate(tried)
    ]
    (picture,) = trial_pictures(Trials("fedlsa", keys, all_tried, left_out))
    with house_style():
        figure = picture.draw()
        figure.canvas.draw()
    return figure


def points_of(panel: Any) -> list[list[list[float]]]:
    """Of the trials, and of the default."""
    return [np.asarray(points.get_offsets()).tolist() for points in panel.collections]


def test_trials_stand_over_the_value_of_every_searched_key() -> None:
    keys = (SearchedKey("lam", "log_uniform", 0.1), SearchedKey("epochs", "int", 2))
    figure = drawn_trials(*keys, tried=[(0.1, 2), (0.001, 1), (1.0, 4)], left_out=3)
    lam, epochs = figure.axes
    assert (lam.get_xlabel(), epochs.get_xlabel()) == ("lam", "epochs")
    assert points_of(lam) == [[[0.001, 51], [1, 52]], [[0.1, 50]]]
    assert points_of(epochs) == [[[1, 51], [4, 52]], [[2, 50]]]
    assert (lam.get_xscale(), epochs.get_xscale()) == ("log", "linear")
    assert {"0.001", "0.01", "0.1", "1"} <= {text.get_text() for text in lam.get_xticklabels()}
    assert [list(panel.get_lines()[0].get_xdata()) for panel in figure.axes] == [[0.1, 0.1], [2, 2]]
    assert lam.get_ylim() == epochs.get_ylim()
    assert "3 of 6 trials did not run all rounds" in str(figure.get_supxlabel())


def test_choices_are_categories_and_a_default_beside_them_is_one_too() -> None:
    mode = SearchedKey("mode", "choice", "block", ("layer", "block"))
    size = SearchedKey("size", "choice", 20, (50, 5))
    top = SearchedKey("top_k", "choice", None, (8, None))
    figure = drawn_trials(mode, size, top, tried=[("block", 20, None), ("layer", 50, 8), ("block", 5, 8)])
    names = [[text.get_text() for text in panel.get_xticklabels()] for panel in figure.axes]
    assert names == [["layer", "block"], ["5", "20", "50"], ["8", "none"]]
    assert points_of(figure.axes[1]) == [[[2, 51], [0, 52]], [[1, 50]]]
    assert [panel.get_lines()[0].get_xdata()[0] for panel in figure.axes] == [1, 1, 1]


def test_a_default_that_no_axis_has_is_said_in_words() -> None:
    decay = SearchedKey("weight_decay", "log_uniform", 0.0)
    (panel,) = drawn_trials(decay, tried=[(0.0,), (0.001,), (0.01,)]).axes
    assert panel.get_xlabel() == "weight_decay\n(the default, 0, is not on this axis)"
    assert points_of(panel) == [[[0.001, 51], [0.01, 52]], []]


def test_a_whole_grid_of_two_keys_is_a_heat_map_too() -> None:
    keys = (SearchedKey("lam", "choice", 0.7, (0.7, 0.1)), SearchedKey("lr", "choice", 0.1, (0.1, 0.2, 0.3)))
    grid = list(product(*(key.choices for key in keys)))
    heat = drawn_trials(*keys, tried=grid).axes[2]
    assert np.allclose(heat.get_images()[0].get_array(), [[53, 54, 55], [50, 51, 52]])
    assert (heat.get_ylabel(), heat.get_xlabel()) == ("lam", "lr")
    assert [patch.get_xy() for patch in heat.patches] == [(-0.5, 0.5)]  # round the default
    assert len(drawn_trials(*keys, tried=grid[:-1]).axes) == 2
    words = SearchedKey("mode", "choice", "a", ("a", "b"))
    assert len(drawn_trials(words, keys[1], tried=list(product("ab", keys[1].choices))).axes) == 2


def test_a_single_trial_or_nothing_searched_has_no_figure() -> None:
    one = Tried({"lam": 0.1}, 50.0, True)
    key = SearchedKey("lam", "log_uniform", 0.1)
    assert not list(trial_pictures(Trials("fedlsa", [key], [one], 4)))
    assert not list(trial_pictures(Trials("fedlsa", [], [one, one], 0)))


@dataclass(frozen=True)
class Ranks:
    methods: tuple[str, ...] = ("FedAvg", "FedLSA", "MOON")
    average_ranks: tuple[float, ...] = (2.8, 1.2, 2.0)
    critical_difference: float = 0.9
    p_value: float = 0.01
    cliques: tuple[tuple[str, ...], ...] = (("FedLSA", "MOON"), ("MOON", "FedAvg"))


def test_the_critical_difference_diagram_joins_what_cannot_be_told_apart(tmp_path: Path) -> None:
    (picture,) = ranking_pictures(Ranks())
    with house_style():
        (panel,) = picture.draw().axes
    bars: list[Any] = [line for line in panel.get_lines() if line.get_linewidth() == 3.5]
    spans = [(min(bar.get_xdata()), max(bar.get_xdata())) for bar in bars]
    assert [span[0] < 1.2 and 2.0 < span[1] < 2.8 for span in spans] == [True, False]
    assert 1.2 < spans[1][0] < 2.0 and spans[1][1] > 2.8
    scale = next(line for line in panel.get_lines() if line.get_marker() == "|")
    assert list(scale.get_xdata()) == [1, 1.9]
    texts = [text.get_text().strip() for text in panel.texts]
    assert texts[-3:] == ["FedLSA  1.20", "MOON  2.00", "2.80  FedAvg"]


def test_only_a_ranking_has_a_diagram(tmp_path: Path) -> None:
    assert [file.name for file in write_ranking(Ranks(), tmp_path)] == [
        "critical_difference.png",
        "critical_difference.pdf",
    ]
    assert write_ranking(None, tmp_path) == []
