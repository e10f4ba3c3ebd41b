"""Settings that a run varies, as lines and heat maps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.records.reader import load_run
from reports.numbers.designs import designs_of
from reports.numbers.sensitivity import grids, sweeps
from tests.kit.figures import drawn, flat, names, shades
from tests.kit.run_folders import Planned, write_run


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
    found = {sweep.parameter: sweep for sweep in sweeps(designs_of([load_run(run)]))}
    assert set(found) == {"lam", "alpha"} and not grids(designs_of([load_run(run)]))
    assert {value: point.by_seed for value, point in found["lam"].values.items()} == {
        lam: {0: pytest.approx(100 * lam + 1), 1: pytest.approx(100 * lam + 3)} for lam in (0.1, 0.3, 0.5)
    }
    figure = drawn(run, "sensitivity")
    assert [panel.get_xlabel() for panel in figure.axes] == ["λ", "α"]
    assert [text.get_text() for text in figure.axes[1].get_xticklabels()] == ["1", "2", "4"]
    bars: Any = figure.axes[1].containers[0]
    assert np.allclose(bars.lines[0].get_ydata(), [31, 32, 34])
    assert "sensitivity_grid" not in names(run)


def test_two_settings_that_vary_together_become_a_heat_map(tmp_path: Path) -> None:
    run = sensitivity_run(tmp_path, together=True)
    (grid,) = grids(designs_of([load_run(run)]))
    assert grid.parameters == ("lam", "alpha") and len(grid.values) == 9
    panel = drawn(run, "sensitivity_grid").axes[0]
    expected = [[100 * lam + alpha for alpha in (1, 2, 4)] for lam in (0.1, 0.3, 0.5)]
    assert np.allclose(shades(panel), expected)
    lines = {sweep.line for sweep in sweeps(designs_of([load_run(run)])) if sweep.parameter == "lam"}
    assert lines == {"FedLSA, α=1", "FedLSA, α=2", "FedLSA, α=4"}


def test_methods_that_differ_in_nothing_have_no_sensitivity(tmp_path: Path) -> None:
    assert names(write_run(tmp_path, [flat("fedavg", 0, 0.5), flat("fedlsa", 0, 0.6)])) == ["convergence"]


def test_cells_on_other_features_are_not_taken_for_the_same(tmp_path: Path) -> None:
    levels = {"vit": 0.1, "resnet": 0.3}
    cells = [
        Planned(
            "fedlsa",
            0,
            (lam + more, lam + more),
            variant=f"{encoder} λ={lam}",
            hyperparameters={"lam": lam},
            encoder={"name": encoder},
        )
        for encoder, more in levels.items()
        for lam in (0.1, 0.3, 0.5)
    ]
    run = load_run(write_run(tmp_path, cells, kind="variants"))
    found = {sweep.line: sweep.values for sweep in sweeps(designs_of([run]))}
    assert set(found) == {"FedLSA, encoder=vit", "FedLSA, encoder=resnet"}
    for encoder, more in levels.items():
        own = {lam: point.by_seed[0] for lam, point in found[f"FedLSA, encoder={encoder}"].items()}
        assert own == pytest.approx({lam: 100 * (lam + more) for lam in (0.1, 0.3, 0.5)})


def grid_cells(lift: float, variant: str, **different: Any) -> list[Planned]:
    """Four combinations of λ and α in one setting, each `lift` better than λ + α/100."""
    hyperparameters = different.pop("hyperparameters", {})
    return [
        Planned(
            "fedlsa",
            0,
            (lam + alpha / 100 + lift,) * 2,
            variant=f"{variant} λ={lam} α={alpha}",
            hyperparameters={"lam": lam, "alpha": alpha, **hyperparameters},
            **different,
        )
        for lam in (0.1, 0.3)
        for alpha in (1, 2)
    ]


@pytest.mark.parametrize(
    ("first", "second", "titles"),
    [
        ({"dataset": "digits"}, {"dataset": "pacs"}, ["FedLSA, digits", "FedLSA, pacs"]),
        (
            {"partition": {"name": "dirichlet", "beta": 0.1}},
            {"partition": {"name": "dirichlet", "beta": 0.5}},
            ["FedLSA, β=0.1", "FedLSA, β=0.5"],
        ),
        (
            {"partition": {"name": "by_domain"}},
            {"partition": {"name": "dirichlet", "beta": 0.5}},
            ["FedLSA, partition=by_domain", "FedLSA, β=0.5, partition=dirichlet"],
        ),
        (
            {"hyperparameters": {"separation": True}},
            {"hyperparameters": {"separation": False}},
            ["FedLSA, separation=True", "FedLSA, separation=False"],
        ),
        (
            {"hyperparameters": {"beta": 1.0}, "partition": {"name": "dirichlet", "beta": 0.1}},
            {"hyperparameters": {"beta": 2.0}, "partition": {"name": "dirichlet", "beta": 0.5}},
            ["FedLSA, β=1, partition.beta=0.1", "FedLSA, β=2, partition.beta=0.5"],
        ),
        ({"method_version": 1}, {"method_version": 2}, ["FedLSA, version=1", "FedLSA, version=2"]),
    ],
)
def test_heat_maps_are_told_apart_by_what_differs(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], titles: list[str]
) -> None:
    cells = grid_cells(0.0, "first", **first) + grid_cells(0.2, "second", **second)
    panels = drawn(write_run(tmp_path, cells, kind="variants"), "sensitivity_grid").axes
    lam_over_alpha = [panel for panel in panels if (panel.get_ylabel(), panel.get_xlabel()) == ("λ", "α")]
    shown = {panel.get_title(): panel.get_images()[0].get_array() for panel in lam_over_alpha}
    assert list(shown) == titles
    for lift, values in zip((0, 20), shown.values(), strict=True):
        assert values is not None and np.allclose(values, [[11 + lift, 12 + lift], [31 + lift, 32 + lift]])
