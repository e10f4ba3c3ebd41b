"""Who has which data, and embeddings in two dimensions."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.errors import UserError
from bench.records.reader import load_run
from reports.figures import supported, write_pictures
from tests.kit.figures import drawn, flat, names
from tests.kit.rounds import write_partition
from tests.kit.run_folders import Planned, write_run


def test_bubbles_are_as_large_as_the_counts(tmp_path: Path) -> None:
    run = write_run(tmp_path, [flat("fedavg", 0, 0.5)])
    write_partition(run, {"mnist 0": [10, 40, 0], "fonts 1": [20, 0, 5]})
    (panel,) = drawn(run, "partition").axes
    bubbles: list[Any] = list(panel.collections)
    first, second = (points.get_sizes() for points in bubbles)
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


def write_projections(path: Path, rows: Sequence[Planned]) -> Path:
    run = write_run(path, rows)
    for cell in rows:
        points = np.zeros((3, 2))
        np.savez(run / cell.dir / "projection.npz", points=points, labels=np.zeros(3), anchors=points[:2])
    return run


def projections(run: Path) -> list[str]:
    return [name for name in names(run) if name.startswith("projection_")]


def test_every_row_of_a_method_has_a_projection_of_its_own(tmp_path: Path) -> None:
    rows = [Planned("fedlsa", 0, (0.5, 0.5), label=label) for label in ("FedLSA", "FedLSA (lam 0.5)")]
    run = write_projections(tmp_path, rows)
    assert projections(run) == ["projection_fedlsa_s0", "projection_fedlsa_lam_0_5_s0"]
    titles = [drawn(run, name).axes[0].get_title() for name in projections(run)]
    assert titles == [f"{row.label} seed 0: samples and class anchors" for row in rows]


def test_names_that_differ_in_symbols_or_case_only_do_not_collide(tmp_path: Path) -> None:
    labels = ["FedLSA (λ = 1)", "FedLSA (α = 1)", "fedlsa 1", "FedLSA 1"]
    rows = [Planned("fedlsa", 0, (0.5, 0.5), label=label) for label in labels]
    rows.append(Planned("fedlsa_like", 0, (0.5, 0.5), label=labels[0]))
    found = projections(write_projections(tmp_path / "all", rows))
    assert len({name.lower() for name in found}) == len(rows)
    assert all(name.startswith("projection_fedlsa_1_s0_") for name in found)
    assert projections(write_projections(tmp_path / "fewer", rows[1:])) == found[1:], "names do not move"


def damaged(file: Path, damage: str) -> None:
    arrays = {"points": np.zeros((3, 2)), "labels": np.zeros(3), "anchors": np.zeros((2, 2))}
    if damage == "an array is missing":
        del arrays["anchors"]
    if damage == "a label is missing":
        arrays["labels"] = np.zeros(2)
    np.savez(file, allow_pickle=False, **arrays)
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
    with pytest.raises(UserError, match=r"projection\.npz cannot be read .*; delete it and make the report"):
        write_pictures(supported(load_run(run)), tmp_path / "figures")
    assert not (tmp_path / "figures").exists()
