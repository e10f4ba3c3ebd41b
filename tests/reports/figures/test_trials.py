"""The figure of a search: its trials over the values of what was searched."""

from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from reports.figures.style import house_style
from reports.figures.trials import SearchedKey, Trials, Tried
from reports.figures.trials import pictures as trial_pictures
from tests.kit.figures import shades


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


def xs_of_line(panel: Any) -> list[float]:
    return list(panel.get_lines()[0].get_xdata())


def test_trials_stand_over_the_value_of_every_searched_key() -> None:
    keys = (SearchedKey("lam", "log_uniform", 0.1), SearchedKey("epochs", "int", 2))
    figure = drawn_trials(*keys, tried=[(0.1, 2), (0.001, 1), (1.0, 4)], left_out=3)
    lam, epochs = figure.axes
    assert (lam.get_xlabel(), epochs.get_xlabel()) == ("lam", "epochs")
    assert points_of(lam) == [[[0.001, 51], [1, 52]], [[0.1, 50]]]
    assert points_of(epochs) == [[[1, 51], [4, 52]], [[2, 50]]]
    assert (lam.get_xscale(), epochs.get_xscale()) == ("log", "linear")
    assert {"0.001", "0.01", "0.1", "1"} <= {text.get_text() for text in lam.get_xticklabels()}
    assert [xs_of_line(panel) for panel in figure.axes] == [[0.1, 0.1], [2, 2]]
    assert lam.get_ylim() == epochs.get_ylim()
    assert "3 of 6 trials did not complete all rounds" in str(figure.get_supxlabel())


def test_choices_are_categories_and_a_default_beside_them_is_one_too() -> None:
    mode = SearchedKey("mode", "choice", "block", ("layer", "block"))
    size = SearchedKey("size", "choice", 20, (50, 5))
    top = SearchedKey("top_k", "choice", None, (8, None))
    figure = drawn_trials(mode, size, top, tried=[("block", 20, None), ("layer", 50, 8), ("block", 5, 8)])
    names = [[text.get_text() for text in panel.get_xticklabels()] for panel in figure.axes]
    assert names == [["layer", "block"], ["5", "20", "50"], ["8", "none"]]
    assert points_of(figure.axes[1]) == [[[2, 51], [0, 52]], [[1, 50]]]
    assert [xs_of_line(panel)[0] for panel in figure.axes] == [1, 1, 1]


def test_a_default_that_no_axis_has_is_said_in_words() -> None:
    decay = SearchedKey("weight_decay", "log_uniform", 0.0)
    (panel,) = drawn_trials(decay, tried=[(0.0,), (0.001,), (0.01,)]).axes
    assert panel.get_xlabel() == "weight_decay\n(default 0 is not on this axis)"
    assert points_of(panel) == [[[0.001, 51], [0.01, 52]], []]


def test_a_whole_grid_of_two_keys_is_a_heat_map_too() -> None:
    keys = (SearchedKey("lam", "choice", 0.7, (0.7, 0.1)), SearchedKey("lr", "choice", 0.1, (0.1, 0.2, 0.3)))
    grid = list(product(*(key.choices for key in keys)))
    heat = drawn_trials(*keys, tried=grid).axes[2]
    assert np.allclose(shades(heat), [[53, 54, 55], [50, 51, 52]])
    assert (heat.get_ylabel(), heat.get_xlabel()) == ("lam", "lr")
    frames: list[Any] = list(heat.patches)
    assert [frame.get_xy() for frame in frames] == [(-0.5, 0.5)]  # round the default
    assert len(drawn_trials(*keys, tried=grid[:-1]).axes) == 2
    words = SearchedKey("mode", "choice", "a", ("a", "b"))
    assert len(drawn_trials(words, keys[1], tried=list(product("ab", keys[1].choices))).axes) == 2


def test_a_single_trial_or_nothing_searched_has_no_figure() -> None:
    one = Tried({"lam": 0.1}, 50.0, True)
    key = SearchedKey("lam", "log_uniform", 0.1)
    assert not list(trial_pictures(Trials("fedlsa", [key], [one], 4)))
    assert not list(trial_pictures(Trials("fedlsa", [], [one, one], 0)))
