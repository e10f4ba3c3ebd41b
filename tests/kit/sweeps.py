"""Run folders of sweeps, with accuracies that follow a formula."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from bench.text import symbol
from reports.numbers.swept import makes_rows
from tests.kit.run_folders import LABELS, Planned, write_run

Values = Mapping[str, Any]
Level = Callable[[Values, int], float]
"""The accuracy of a combination at a seed, as a fraction."""


def in_words(values: Values) -> str:
    return ", ".join(f"{symbol(key)}={value}" for key, value in values.items())


def swept_row(
    method: str,
    grid: Mapping[str, Sequence[Any]],
    defaults: Values,
    level: Level,
    setting: str = "",
    seeds: int = 2,
    **options: Any,
) -> list[Planned]:
    """The cells of one row, with the labels and settings that a sweep gives them."""
    cells = []
    for combination in product(*grid.values()):
        values = dict(zip(grid, combination, strict=True))
        of_row = {key: value for key, value in values.items() if makes_rows(key)}
        of_setting = {key: value for key, value in values.items() if key not in of_row}
        label = " ".join(filter(None, (LABELS[method], in_words(of_row))))
        for seed in range(seeds):
            accuracy = level(values, seed)
            cells.append(
                Planned(
                    method,
                    seed,
                    (accuracy + 0.02, accuracy - 0.02),
                    label=label,
                    variant=", ".join(filter(None, (setting, in_words(of_setting)))),
                    swept={"row": LABELS[method], "setting": setting, "values": values, "defaults": defaults},
                    **{"dataset": values.get("dataset.name", "digits_mini"), **options},
                )
            )
    return cells


LAM, TAU, BETA = "fedlsa.lam", "fedlsa.tau", "partition.beta"
DEFAULTS = {LAM: 0.5, TAU: 0.1, BETA: 0.1}


def rising(values: Values, seed: int) -> float:
    """Best at λ=0.9 and τ=0.1; easier with β; the second seed is two points above the first."""
    lam, tau, beta = values.get(LAM, 0.5), values.get(TAU, 0.1), values.get(BETA, 0.1)
    return 0.4 + 0.2 * float(lam) - abs(float(tau) - 0.1) + 0.1 * float(beta) + 0.02 * seed


def two_keys(path: Path, suite: str = "quickstart", **options: Any) -> Path:
    """λ × τ of FedLSA."""
    grid = {LAM: [0.1, 0.5, 0.9], TAU: [0.05, 0.1]}
    defaults = {LAM: 0.5, TAU: 0.1}
    return write_run(path, swept_row("fedlsa", grid, defaults, rising, **options), suite=suite)


def three_keys(path: Path, suite: str = "quickstart", **options: Any) -> Path:
    """λ × τ × β of FedLSA, and FedAvg over the same β."""
    grid = {LAM: [0.1, 0.5, 0.9], TAU: [0.05, 0.1], BETA: [0.05, 0.1, 0.5]}
    cells = swept_row(
        "fedavg", {BETA: grid[BETA]}, {BETA: 0.1}, lambda values, seed: rising(values, seed) - 0.1
    )
    cells += swept_row("fedlsa", grid, DEFAULTS, rising)
    return write_run(path, cells, suite=suite, **options)
