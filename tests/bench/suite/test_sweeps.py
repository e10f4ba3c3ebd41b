"""Sweeps: values of keys, and the cells of their cross product."""

from __future__ import annotations

import math
from typing import Any

import pytest

from bench.errors import UserError
from bench.runs.request import RunRequest
from bench.suite.model import Suite
from bench.suite.planning import PlannedCell, plan_cells
from bench.suite.sweeps import parse_sweep
from tests.kit.cli import TINY


def suite(**changes: Any) -> Suite:
    return Suite.model_validate(TINY | {"methods": ["fedavg", "fedprox"], "seeds": 1} | changes)


def swept(*sweeps: str, **changes: Any) -> list[PlannedCell]:
    own = suite(**changes)
    return plan_cells(RunRequest(own, sweeps=dict(map(parse_sweep, sweeps))).asked(own))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a.b=0.1,0.5", [0.1, 0.5]),
        ("a.b=1e-3", [0.001]),
        ("a.b=x,true", ["x", True]),
        ("a.b=0.01..1:log3", [0.01, 0.1, 1.0]),
        ("a.b=0..2:linear5", [0.0, 0.5, 1.0, 1.5, 2.0]),
    ],
)
def test_values_are_listed_or_taken_from_a_range(text: str, values: list[Any]) -> None:
    assert parse_sweep(text) == ("a.b", values)


def test_drawn_values_are_the_same_each_time_and_more_of_them_contain_the_fewer() -> None:
    _, few = parse_sweep("optimiser.lr=1e-3..1:random20")
    _, more = parse_sweep("optimiser.lr=1e-3..1:random30")
    assert len(few) == 20 and set(few) < set(more) and all(0.001 <= value <= 1 for value in more)
    below = sum(value < math.sqrt(0.001) for value in parse_sweep("optimiser.lr=1e-3..1:random1000")[1])
    assert 400 < below < 600  # half of them on a logarithmic scale
    _, uniform = parse_sweep("a.b=0..1:uniform1000")
    assert 0.45 < sum(uniform) / len(uniform) < 0.55


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fedprox.mu", "expected KEY=VALUES"),
        ("fedprox.mu=", "expected KEY=VALUES"),
        ("fedprox.mu=[", "give a list of values or a range"),
        ("fedprox.mu=1,1", "the value 1 is there twice"),
        ("fedprox.mu=0..1:log5", "must be above 0"),
        ("fedprox.mu=1..0.1:log5", "the lower one first"),
        ("fedprox.mu=0.1..1:lgo5", "'lgo' is unknown"),
        ("fedprox.mu=0.1..1:log0", "between 1 and"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_one_sentence(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_sweep(text)


def test_keys_of_rows_make_rows_and_keys_of_sections_settings() -> None:
    cells = swept("fedprox.mu=0.1,1", "partition.samples=15,20")
    assert [(cell.variant, cell.label) for cell in cells] == [
        (f"samples={samples}", label)
        for samples in (15, 20)
        for label in ("FedAvg", "FedProx μ=0.1", "FedProx μ=1")
    ]
    last = cells[-1].swept
    assert last is not None and last.row == "FedProx"
    assert last.values == {"partition.samples": 20, "fedprox.mu": 1.0}
    assert last.defaults == {
        "partition.samples": TINY["partition"].get("samples"),
        "fedprox.mu": 0.01,
    }


def test_a_swept_cell_is_the_cell_of_the_same_values_given_with_set() -> None:
    cells = swept("fedprox.mu=0.1,1", "optimiser.lr=0.2,0.3", "partition.samples=15")
    wanted = next(cell for cell in cells if cell.label == "FedProx μ=1, lr=0.3")
    own = suite()
    overrides = {"fedprox.mu": 1.0, "fedprox.optimiser.lr": 0.3, "partition.samples": 15}
    alone = plan_cells(RunRequest(own, overrides=overrides).asked(own))
    assert wanted.cell_id in [cell.cell_id for cell in alone]


def test_several_mappings_are_united_and_what_they_share_is_there_once() -> None:
    sweep = [{"fedprox.mu": [0.01, 1.0]}, {"optimiser.lr": [0.05, 0.5]}]
    cells = plan_cells(suite(methods=["fedprox"], sweep=sweep))
    own = TINY["training"]["optimiser"]["lr"]
    points = {(0.01, own), (1.0, own), (0.01, 0.05), (0.01, 0.5)}
    assert {cell.label for cell in cells} == {f"FedProx μ={mu:g}, lr={rate:g}" for mu, rate in points}
    assert len(cells) == len(points)


def test_a_value_that_the_row_has_anyway_is_the_ordinary_cell() -> None:
    plain = plan_cells(suite())
    again = swept(f"optimiser.lr={TINY['training']['optimiser']['lr']}", "fedprox.mu=0.01")
    assert [cell.cell_id for cell in again] == [cell.cell_id for cell in plain]


def test_a_sweep_is_crossed_with_variants_and_takes_the_place_of_what_they_set() -> None:
    variants = [{"name": f"n={count}", "set": {"partition.samples": count}} for count in (15, 20)]
    options: dict[str, Any] = {"variants": variants, "table": {"kind": "variants"}, "methods": ["fedavg"]}
    crossed = swept("training.epochs=1,2", **options)
    assert [cell.variant for cell in crossed] == [
        f"n={count}, epochs={epochs}" for count in (15, 20) for epochs in (1, 2)
    ]
    replaced = swept("partition.samples=12,18", **options)
    assert [cell.variant for cell in replaced] == ["samples=12", "samples=18"]


def test_the_suites_own_sweep_is_crossed_with_the_users_and_loses_what_is_set() -> None:
    own = suite(sweep={"fedprox.mu": "0.01..1:log3", "partition.samples": [15, 20]}, methods=["fedprox"])
    assert len(plan_cells(own)) == 6
    request = RunRequest(own, sweeps={"optimiser.lr": [0.1, 0.2]}, overrides={"fedprox.mu": 0.5})
    assert {cell.label for cell in plan_cells(request.asked(own))} == {"FedProx lr=0.1", "FedProx lr=0.2"}
    with pytest.raises(UserError, match=r"--set and --sweep both have fedprox\.mu"):
        RunRequest(own, sweeps={"fedprox.mu": [1.0]}, overrides={"fedprox.mu": 0.5})


def test_a_swept_learning_rate_leaves_methods_alone_that_take_no_steps() -> None:
    cells = swept("optimiser.lr=0.1,0.2", methods=["fedavg", "fed3r"])
    assert [cell.label for cell in cells] == ["FedAvg lr=0.1", "FedAvg lr=0.2", "Fed3R"]


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ("mu=1,2", "cannot set 'mu': it must begin with a method"),
        ("fedprx.mu=1,2", "did you mean 'fedprox'"),
        ("fedprox.nu=1,2", "unknown key 'nu'"),
        ("fedprox.mu=1,-1", "mu = -1"),
        ("partition.betta=1,2", "unknown key 'betta'"),
    ],
)
def test_a_key_or_value_that_is_not_there_is_refused(sweep: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        swept(sweep)


def test_one_thing_cannot_be_swept_under_two_names() -> None:
    with pytest.raises(UserError, match="another swept key sets the same in the row 'FedAvg'"):
        swept("optimiser.lr=0.1,0.2", "fedavg.optimiser.lr=0.3,0.4")
