"""Rows by name: labels, methods, and what `--set` and `--methods` make of them."""

from __future__ import annotations

from typing import Any

import pytest

from bench.errors import UserError
from bench.suite.loading import load_suite
from bench.suite.model import Suite
from bench.suite.overrides import parse_assignment
from bench.suite.planning import plan_cells
from bench.suite.rows import check_file_names, file_name_of, label_of, with_rows
from tests.kit.cli import TINY

PLAIN = {"name": "fedavg", "label": "FedAvg (plain SGD)", "set": {"optimiser": {"name": "sgd", "lr": 0.02}}}
CLIPPED = {"name": "fedprox", "label": "Clipped, no noise"}


def suite(*rows: Any) -> Suite:
    return Suite.model_validate(TINY | {"methods": list(rows or ("fedavg", PLAIN, "fedprox", CLIPPED))})


def labels(found: Suite) -> list[str]:
    return [label_of(entry) for entry in found.methods]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["fedavg"], ["FedAvg", "FedAvg (plain SGD)"]),
        (["FedAvg"], ["FedAvg"]),
        (["FedAvg (plain SGD)"], ["FedAvg (plain SGD)"]),
        (["FedAvg (plain SGD)", "fedavg"], ["FedAvg (plain SGD)", "FedAvg"]),
        (["Clipped", "no noise", "FedProx"], ["Clipped, no noise", "FedProx"]),
        (["moon"], ["MOON"]),
    ],
)
def test_a_label_means_one_row_and_a_method_all_of_its_rows(wanted: list[str], found: list[str]) -> None:
    assert labels(with_rows(suite(), wanted)) == found


def test_a_misspelt_label_gets_the_nearest_one() -> None:
    with pytest.raises(
        UserError, match=r"has no row 'FedAvg \(plain SDG\)'; did you mean 'FedAvg \(plain SGD\)'"
    ):
        with_rows(suite(), ["FedAvg (plain SDG)"])


@pytest.mark.parametrize(
    ("key", "rates"),
    [
        ("fedavg.optimiser.lr", [0.5, 0.5, None]),
        ("FedAvg.optimiser.lr", [0.5, 0.02, None]),
        ("FedAvg (plain SGD).optimiser.lr", [None, 0.5, None]),
        ("optimiser.lr", [0.5, 0.5, 0.5]),
    ],
)
def test_settings_of_one_row_of_a_methods_rows_and_of_all(key: str, rates: list[float | None]) -> None:
    changed = suite("fedavg", PLAIN, "fedprox").changed(dict([parse_assignment(f"{key}=0.5")]))
    found = [entry.set.get("optimiser", {}).get("lr") for entry in changed.methods]
    assert found == [0.02 if rate is None and place == 1 else rate for place, rate in enumerate(rates)]


def test_a_label_with_an_equals_sign_can_be_set() -> None:
    assert parse_assignment("z = 8.mu=0.5") == ("z = 8.mu", 0.5)
    row = {"name": "fedprox", "label": "z = 8"}
    assert suite(row).changed({"z = 8.mu": 0.5}).methods[0].set == {"mu": 0.5}


def test_files_of_a_row_are_named_after_its_label_or_else_its_method() -> None:
    names = [file_name_of(entry) for entry in suite().methods]
    assert names == ["fedavg", "fedavg_plain_sgd", "fedprox", "clipped_no_noise"]
    with pytest.raises(UserError, match="'FedAvg' and 'fedavg!' would both be called fedavg"):
        check_file_names(suite("fedavg", {"name": "fedprox", "label": "fedavg!"}).methods)


def test_what_is_set_is_not_overruled_by_a_variant() -> None:
    from bench.runs.request import RunRequest

    variants = [{"name": f"n={count}", "set": {"partition.samples": count}} for count in (15, 20)]
    whole = [{"name": "whole", "set": {"partition": TINY["partition"]}}]
    for given in (variants, whole):
        own = Suite.model_validate(TINY | {"variants": given, "table": {"kind": "variants"}})
        asked = RunRequest(own, overrides={"partition.samples": 12}).asked(own)
        cells = plan_cells(asked)
        assert {cell.config.partition.options["samples"] for cell in cells} == {12}
        assert {cell.variant for cell in cells} == {"" if given is variants else "whole"}


def test_shipped_suites_have_rows_whose_files_differ() -> None:
    check_file_names(load_suite("office_caltech").methods)
