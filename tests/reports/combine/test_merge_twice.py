"""Merging again what is merged already changes nothing."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from bench.records.reader import Run, load_run
from reports.combine.merge import merge_runs
from tests.kit.run_folders import Planned, write_run

Row = tuple[str, float, list[int], bool]
"""Method, a hyperparameter, seeds, and whether the cells are finished."""

rows = st.lists(
    st.tuples(
        st.sampled_from(["fedavg", "fedprox", "fedlsa"]),
        st.sampled_from([0.1, 0.7]),
        st.lists(st.integers(0, 3), min_size=1, unique=True),
        st.booleans(),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda row: row[0],
)


def run_of(folder: Path, content: Sequence[Row]) -> Run:
    cells = [
        Named(method, seed, (0.5, 0.6) if done else None, hyperparameters={"lam": lam})
        for method, lam, own, done in content
        for seed in own
    ]
    return load_run(write_run(folder, cells))


class Named(Planned):
    """A cell whose id tells its hyperparameter too, as a real one does."""

    @property
    def cell(self) -> str:
        return f"{super().cell}-{self.hyperparameters['lam']}"


def merged(*runs: Run) -> Run:
    (found,) = merge_runs(runs, mix=True)
    return found


@settings(deadline=None, max_examples=30)
@given(rows, rows)
def test_merging_is_idempotent(ours: list[Row], theirs: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        first, second = run_of(Path(scratch) / "a", ours), run_of(Path(scratch) / "b", theirs)
        both = merged(first, second)
        assert merged(first, first) == first
        assert merged(both, second) == merged(first, both) == both
        assert merged(both, both) == both
        assert {cell.cell_id for cell in both.cells} == {cell.cell_id for cell in first.cells + second.cells}


@settings(deadline=None, max_examples=20)
@given(rows)
def test_a_copy_of_a_run_adds_no_cells(content: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        run, copy = run_of(Path(scratch) / "a", content), run_of(Path(scratch) / "b", content)
        found = merged(run, copy)
        assert sorted(cell.name for cell in found.cells) == sorted(cell.name for cell in run.cells)
        assert found.sources == (Path(scratch) / "a", Path(scratch) / "b")
