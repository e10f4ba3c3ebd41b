"""Figures of sweeps: lines and heat maps with the default and the best, at the defaults of other keys."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.records.reader import load_run
from reports.figures.sensitivity import sweep_pictures
from reports.figures.style import house_style
from reports.numbers.designs import designs_of
from reports.numbers.sensitivity import grids, sweeps
from tests.kit.figures import drawn, shades
from tests.kit.run_folders import write_run
from tests.kit.sweeps import BETA, LAM, TAU, Values, rising, swept_row, three_keys, two_keys


def marks(panel: Axes) -> dict[str, Any]:
    """Label → the places of its marks."""
    return {
        str(each.get_label()): [(float(x), float(y)) for x, y in np.asarray(each.get_offsets())]
        for each in panel.collections
        if not str(each.get_label()).startswith("_")
    }


def drawn_over(runs: list[Path], name: str) -> Figure:
    pictures = {picture.name: picture for picture in sweep_pictures([load_run(run) for run in runs])}
    with house_style():
        return pictures[name].draw()


def small_print(figure: Figure) -> str:
    return " ".join(figure.get_supxlabel().split())


def test_one_key_is_a_line_with_its_default_and_its_best(tmp_path: Path) -> None:
    cells = swept_row("fedlsa", {LAM: [0.1, 0.5, 0.9]}, {LAM: 0.5}, rising)
    figure = drawn(write_run(tmp_path, cells), "sensitivity")
    (panel,) = figure.axes
    assert panel.get_xlabel() == "λ"
    assert [text.get_text() for text in panel.get_xticklabels()] == ["0.1", "0.5", "0.9"]
    assert marks(panel) == {
        "default": [(1, pytest.approx(52))],
        "best on test": [(2, pytest.approx(60))],
    }
    assert "choose hyperparameters with `bench tune`" in small_print(figure)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["FedLSA", "default", "best on test"]


def test_other_keys_are_at_their_defaults_and_the_figure_says_so(tmp_path: Path) -> None:
    run = three_keys(tmp_path)
    found = {(each.parameter, each.line): each for each in sweeps(designs_of([load_run(run)]))}
    assert set(found) == {(BETA, "FedAvg"), (BETA, "FedLSA"), (LAM, "FedLSA"), (TAU, "FedLSA")}
    own = {value: point.mean for value, point in found[LAM, "FedLSA"].values.items()}
    assert own == pytest.approx({lam: 100 * rising({LAM: lam}, 0) + 1 for lam in (0.1, 0.5, 0.9)})
    assert found[LAM, "FedLSA"].fixed == "τ=0.1, β=0.1 (default)"
    assert found[BETA, "FedLSA"].best is None and found[BETA, "FedLSA"].default == 0.1
    assert "FedLSA over λ: τ=0.1, β=0.1 (default)" in small_print(drawn(run, "sensitivity"))


def test_a_default_that_was_not_run_gives_way_to_the_best(tmp_path: Path) -> None:
    cells = swept_row("fedlsa", {LAM: [0.1, 0.5, 0.9], TAU: [0.05, 0.2]}, {LAM: 0.5, TAU: 0.1}, rising)
    run = write_run(tmp_path, cells)
    (line,) = [each for each in sweeps(designs_of([load_run(run)])) if each.parameter == LAM]
    assert line.fixed == "τ=0.05 (best; the default was not run)" and line.default == 0.5
    (grid,) = grids(designs_of([load_run(run)]))
    assert grid.default is None and grid.best == {(0.9, 0.05)}


def test_two_keys_are_a_map_for_each_dataset(tmp_path: Path) -> None:
    runs = [two_keys(tmp_path / name, suite=name, dataset=name) for name in ("digits", "pacs")]
    figure = drawn_over(runs, "sensitivity_grid")
    panels = [panel for panel in figure.axes if panel.get_images()]
    assert [panel.get_title() for panel in panels] == ["FedLSA, digits", "FedLSA, pacs"]
    expected = [[100 * rising({LAM: lam, TAU: tau}, 0) + 1 for tau in (0.05, 0.1)] for lam in (0.1, 0.5, 0.9)]
    for panel in panels:
        assert np.allclose(shades(panel), expected)
        (frame,) = panel.patches
        assert frame.get_xy() == (0.5, 0.5)  # type: ignore[attr-defined]
        (star,) = marks(panel)["best on test"]
        assert (round(star[0]), round(star[1])) == (1, 2)
    lines = drawn_over(runs, "sensitivity")
    assert [(panel.get_title(), panel.get_xlabel()) for panel in lines.axes] == [
        ("digits", "λ"),
        ("digits", "τ"),
        ("pacs", "λ"),
        ("pacs", "τ"),
    ]


def test_a_map_over_a_setting_of_the_data_has_a_best_for_each(tmp_path: Path) -> None:
    found = {grid.parameters: grid for grid in grids(designs_of([load_run(three_keys(tmp_path))]))}
    assert set(found) == {(LAM, TAU), (LAM, BETA), (TAU, BETA)}
    assert found[LAM, BETA].best == {(0.9, beta) for beta in (0.05, 0.1, 0.5)}
    assert found[LAM, TAU].best == {(0.9, 0.1)} and found[LAM, TAU].title == "FedLSA, β=0.1 (default)"


def test_text_has_a_categorical_axis_in_the_order_it_was_given(tmp_path: Path) -> None:
    levels = {"cosine": 0.5, "none": 0.4, "step": 0.6}

    def level(values: Values, seed: int) -> float:
        return levels[values["fedlsa.mode"]] + 0.1 * float(values[LAM])

    grid: dict[str, list[Any]] = {"fedlsa.mode": list(levels), LAM: [0.1, 0.5]}
    run = write_run(tmp_path, swept_row("fedlsa", grid, {"fedlsa.mode": "none", LAM: 0.1}, level))
    panels = {panel.get_xlabel(): panel for panel in drawn(run, "sensitivity").axes}
    assert [text.get_text() for text in panels["mode"].get_xticklabels()] == list(levels)
    assert marks(panels["mode"])["default"] == [(1, pytest.approx(41))]
    assert shades(drawn(run, "sensitivity_grid").axes[0]).shape == (3, 2)


def test_a_swept_dataset_is_a_panel_and_not_an_axis(tmp_path: Path) -> None:
    grid: dict[str, list[Any]] = {LAM: [0.1, 0.5], "dataset.name": ["digits", "pacs"]}
    cells = swept_row("fedlsa", grid, {LAM: 0.5, "dataset.name": "digits"}, rising)
    figure = drawn(write_run(tmp_path, cells), "sensitivity")
    assert [(panel.get_title(), panel.get_xlabel()) for panel in figure.axes] == [
        ("digits", "λ"),
        ("pacs", "λ"),
    ]


def test_one_key_at_a_time_around_the_defaults_gives_the_lines_and_no_map(tmp_path: Path) -> None:
    defaults = {LAM: 0.5, TAU: 0.1}
    cells = swept_row("fedlsa", {LAM: [0.1, 0.5, 0.9], TAU: [0.1]}, defaults, rising)
    cells += swept_row("fedlsa", {LAM: [0.5], TAU: [0.05, 0.2]}, defaults, rising)
    designs = designs_of([load_run(write_run(tmp_path, cells))])
    assert {each.parameter: list(each.values) for each in sweeps(designs)} == {
        LAM: [0.1, 0.5, 0.9],
        TAU: [0.05, 0.1, 0.2],
    }
    assert grids(designs) == []


def test_curves_of_a_large_sweep_show_the_defaults_and_say_so(tmp_path: Path) -> None:
    grid = {LAM: [value / 20 for value in range(20)]}
    cells = swept_row("fedlsa", grid, {LAM: 0.5}, rising, curve={10: (0.4, 0.4), 20: (0.5, 0.5)})
    figure = drawn(write_run(tmp_path, cells), "convergence")
    assert [line.get_label() for line in figure.axes[0].get_lines()] == ["FedLSA λ=0.5"]
    assert "38 of 40 cells have other values" in small_print(figure)
