"""`bench show partition` for datasets with more classes than columns fit on a screen."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.kit.cli import call_bench, write_suite


def shown(folder: Path, classes: int, columns: int) -> list[str]:
    """The lines for two clients, of which each has half of the classes, 3 samples of each."""
    names = np.array([f"long_class_name_{number:03}" for number in range(classes)])
    labels = np.repeat(np.arange(classes), 3)
    x = np.zeros((len(labels), 8), np.float32)
    np.savez(folder / "x.npz", x_train=x, y_train=labels, x_test=x, y_test=labels, classes=names)
    suite = write_suite(
        folder,
        dataset={"name": "arrays", "path": str(folder / "x.npz")},
        partition={"name": "shards", "clients": 2, "shards_per_client": 1},
    )
    outcome = call_bench("show", "partition", suite, COLUMNS=str(columns), BENCH_CACHE=str(folder / "cache"))
    assert outcome.code == 0, outcome.err
    return outcome.out.splitlines()


@pytest.mark.parametrize("classes", [30, 65, 100, 200])
def test_many_classes_fit_on_a_screen(classes: int, tmp_path: Path) -> None:
    lines = shown(tmp_path, classes, columns=140)
    assert max(map(len, lines[:-1])) <= 140
    rows = [re.split(" *│ ?", line)[1:-1] for line in lines if re.match(r"│ \d", line)]
    assert [row[:2] for row in rows] == [["0", "x"], ["1", "x"]]
    assert sum(int(row[2]) for row in rows) == 3 * classes
    assert sum(int(row[3]) for row in rows) in (classes, classes + 1)  # a class may be cut in two
    bars = [row[4].ljust(len(rows[0][4])) for row in rows]
    assert min(len(bar.strip()) for bar in bars) >= 15
    assert all(re.match(r"long_class_name_\d{3} 3, long_", row[5]) for row in rows)


def test_few_classes_have_a_column_each(tmp_path: Path) -> None:
    lines = shown(tmp_path, classes=4, columns=140)
    assert "long_class_name_003" in lines[1]
    assert any(line.count("█ 3") == 2 for line in lines)


def test_what_is_unseen_has_its_test_samples_shown(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, unseen={"domain": "fonts"})
    outcome = call_bench("show", "partition", suite)
    rows = re.findall(r"│ (\w+) +│ (\w+) +│ (\d+) +│", outcome.out)
    trained = [(str(number), domain, "20") for number, domain in enumerate(("mnist", "optdigits", "blended"))]
    assert rows == [*trained, ("unseen", "fonts", "750")]
    assert "unseen: nobody trains on it; its 750 samples are what models are tested on" in outcome.out


def test_domains_left_out_in_turn_have_a_table_each(tmp_path: Path) -> None:
    outcome = call_bench("show", "partition", write_suite(tmp_path, unseen="domain"))
    assert re.findall(r"│ unseen +│ (\w+)", outcome.out) == ["mnist", "optdigits", "blended", "fonts"]
