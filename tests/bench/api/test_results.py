"""Results of runs from Python: tables, frames and comparisons, from a run folder on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

import bench
from bench.api.rows import rows_of
from bench.errors import UserError
from bench.records.schema import average
from bench.suite.model import MethodEntry
from methods.fedavg import FedAvg
from methods.fedprox import FedProx
from tests.kit.places import REPOSITORY
from tests.kit.run_folders import Planned, write_run

OLD_RUN = REPOSITORY / "tests" / "golden" / "run_of_version_0.1"


@pytest.fixture
def result() -> bench.Result:
    return bench.load(OLD_RUN)


def test_a_run_folder_is_loaded_with_its_table(result: bench.Result) -> None:
    assert (result.path, result.failures) == (OLD_RUN, {})
    assert [row.label for row in result.table().rows] == ["FedAvg", "FedLSA"]
    assert "4 of 4 cells done" in repr(result)


def test_a_notebook_shows_the_table(result: bench.Result) -> None:
    html = result._repr_html_()
    assert html == result.table()._repr_html_()
    assert "<table" in html and "FedLSA" in html


def test_frames_hold_the_numbers_of_the_records(result: bench.Result) -> None:
    frame = result.frame()
    assert len(frame) == 4 * 4  # cells × domains
    for cell in result.records.cells:
        assert cell.result is not None and cell.result.final.test is not None
        rows = frame[frame["cell_id"] == cell.cell_id].set_index("domain")["accuracy"]
        finals = {domain: value for domain, value in cell.result.final.test.items() if value is not None}
        assert rows.to_dict() == pytest.approx({name: 100 * value for name, value in finals.items()})
    curves = result.curves()
    assert len(curves) == sum(len(cell.rounds) for cell in result.records.cells)
    last = result.records.cells[0].rounds[-1]
    assert last.test is not None
    of_cell = curves[curves["cell_id"] == result.records.cells[0].cell_id]
    assert of_cell["avg"].iloc[-1] == pytest.approx(100 * average(last.test))


def test_an_unknown_variant_names_the_known_ones(result: bench.Result) -> None:
    with pytest.raises(UserError, match=r"no table of the variant 'β=0.5'; known: ''"):
        result.table("β=0.5")


def test_failures_say_why(tmp_path: Path) -> None:
    cells = [Planned("fedavg", 0, [0.8, 0.4]), Planned("fedavg", 1, error="out of memory")]
    assert bench.load(write_run(tmp_path, cells)).failures == {"FedAvg seed 1": "out of memory"}


def test_folders_of_one_suite_are_loaded_together(tmp_path: Path) -> None:
    first = write_run(tmp_path / "one", [Planned("fedavg", 0, [0.8, 0.4])])
    second = write_run(tmp_path / "two", [Planned("fedavg", 1, [0.9, 0.5])])
    assert [cell.seed for cell in bench.load(first, second).records.cells] == [0, 1]
    other = write_run(tmp_path / "three", [Planned("fedavg", 0, [0.8, 0.4])], suite="digits")
    with pytest.raises(UserError, match="different suites"):
        bench.load(first, other)


def test_a_comparison_has_one_row_per_common_cell(tmp_path: Path) -> None:
    first = write_run(tmp_path / "one", [Planned("fedavg", seed, [0.8, 0.4]) for seed in range(2)])
    second = write_run(tmp_path / "two", [Planned("fedavg", 0, [0.9, 0.4])])
    (row,) = bench.compare(first, second).to_dict("records")
    assert row["cell"] == "FedAvg seed 0"
    assert (row["first"], row["second"]) == pytest.approx((60.0, 65.0))
    assert row["difference"] == pytest.approx(5.0)


def test_methods_may_be_names_classes_and_objects() -> None:
    found = rows_of(["scaffold", FedAvg, FedProx(mu=0.1)])
    assert found[0] == "scaffold"
    assert found[1] == MethodEntry(name="fedavg", set={})
    assert found[2] == MethodEntry(name="fedprox", set={"mu": 0.1})


def test_objects_of_one_method_are_told_apart_by_their_hyperparameters() -> None:
    labels = [row.label for row in rows_of([FedProx(mu=0.1), FedProx()]) if isinstance(row, MethodEntry)]
    assert labels == ["FedProx (mu=0.1)", "FedProx (default)"]


def test_a_single_name_in_place_of_a_list_is_a_clear_mistake() -> None:
    with pytest.raises(UserError, match=r"give a list, such as \['fedavg'\]"):
        rows_of("fedavg")


def test_an_unknown_attribute_of_the_package_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'no_such_thing'"):
        bench.no_such_thing  # noqa: B018
