"""The interval of a gain: what the seeds and what the test samples contribute to it."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.records.predictions import Predictions
from bench.records.reader import load_run
from reports.numbers.gains import Gain, gains_over
from reports.numbers.scores import rows_of
from tests.kit.predictions import DOMAINS, keep, predicting
from tests.kit.run_folders import Planned, write_run

SAMPLES = 400
Tested = tuple[Planned, Predictions]


def gain(path: Path, cells: Sequence[Tested], kept: Sequence[Tested] | None = None) -> Gain:
    """FedLSA's gain over FedAvg in a run with these cells, of which `kept` keep their predictions."""
    run = keep(write_run(path, [cell for cell, _ in cells]), cells if kept is None else kept)
    reference, ours = rows_of(load_run(run), "")
    return gains_over(reference, [reference, ours])[ours.key]


def luck_of_samples(seeds: int, **options: Any) -> list[Tested]:
    """Both methods are right on random samples, the same at every seed: training has no luck at all."""
    draw = np.random.default_rng(0)
    right = {
        method: {domain: draw.random(SAMPLES) < level for domain in DOMAINS}
        for method, level in (("fedavg", 0.5), ("fedlsa", 0.6))
    }
    return [predicting(method, seed, right[method], **options) for method in right for seed in range(seeds)]


def test_the_luck_of_the_test_samples_is_covered_however_many_seeds_there_are(tmp_path: Path) -> None:
    cells = luck_of_samples(5)
    found = gain(tmp_path / "five", cells)
    columns = [cells[5][1].correctness(domain) - cells[0][1].correctness(domain) for domain in DOMAINS]
    error = 100 * math.sqrt(sum(column.var() / SAMPLES for column in columns)) / len(DOMAINS)
    middle = 100 * np.mean(columns)
    assert found.sampled and found.seeds == 5
    assert found.interval == pytest.approx((middle - 1.96 * error, middle + 1.96 * error), abs=0.3)
    ten = gain(tmp_path / "ten", luck_of_samples(10))
    assert ten.interval == pytest.approx(found.interval)


def test_methods_that_are_right_on_the_same_samples_do_not_differ(tmp_path: Path) -> None:
    cells = luck_of_samples(3)
    same = [*cells[:3], *(predicting("fedlsa", seed, cells[0][1].right) for seed in range(3))]
    assert gain(tmp_path, same).interval == (0.0, 0.0)


def test_without_predictions_only_the_seeds_count(tmp_path: Path) -> None:
    cells = luck_of_samples(5)
    found = gain(tmp_path, cells, kept=cells[:-1])
    assert not found.sampled
    low, high = found.interval
    assert high - low == pytest.approx(0, abs=1e-9)  # the seeds are all the same


def test_predictions_on_other_test_sets_are_not_compared(tmp_path: Path) -> None:
    cells = luck_of_samples(5)
    other = dict.fromkeys(DOMAINS, "other labels")
    cells[-1] = predicting("fedlsa", 4, cells[-1][1].right, digests=other)
    assert not gain(tmp_path, cells).sampled


def test_test_sets_of_their_own_make_seeds_independent(tmp_path: Path) -> None:
    """Five test sets are five times as many samples, but for the widening for few seeds."""
    shared = gain(tmp_path / "shared", luck_of_samples(5))
    cells = luck_of_samples(5)
    own = [
        predicting(cell.method, cell.seed, kept.right, digests=dict.fromkeys(DOMAINS, f"labels {cell.seed}"))
        for cell, kept in cells
    ]
    apart = gain(tmp_path / "apart", own)
    widths = [found.interval[1] - found.interval[0] for found in (shared, apart)]
    assert apart.sampled and widths[1] < 0.85 * widths[0]


def test_the_luck_of_training_widens_the_interval(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    cells = luck_of_samples(5)[:5]
    for seed, level in enumerate((0.4, 0.8, 0.5, 0.7, 0.6)):
        right = {domain: draw.random(SAMPLES) < level for domain in DOMAINS}
        cells.append(predicting("fedlsa", seed, right))
    both = gain(tmp_path / "both", cells)
    seeds = gain(tmp_path / "seeds", cells, kept=[])
    assert both.interval[1] - both.interval[0] > 1.02 * (seeds.interval[1] - seeds.interval[0]) > 20


def test_two_common_seeds_have_no_gain(tmp_path: Path) -> None:
    cells = luck_of_samples(3)
    run = keep(write_run(tmp_path, [cell for cell, _ in cells[:-1]]), cells[:-1])
    reference, ours = rows_of(load_run(run), "")
    assert gains_over(reference, [reference, ours]) == {}
