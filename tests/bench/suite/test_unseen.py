"""The key `unseen` of a suite: which cells it plans, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from bench.runs.partition_record import partition_record
from bench.runs.plan import make_plan
from bench.suite.model import Suite
from bench.suite.planning import plan_cells
from bench.validation import validated
from tests.kit.cli import TINY

DOMAINS = ["mnist", "optdigits", "blended", "fonts"]
IN_TURN = [f"without {domain}" for domain in DOMAINS]


def suite(**changes: Any) -> Suite:
    return validated(Suite, TINY | changes, "suite file tiny.yaml")


def variants(suite: Suite) -> list[str]:
    return list(dict.fromkeys(cell.variant for cell in plan_cells(suite)))


def test_every_domain_is_left_out_in_turn(tmp_path: Path) -> None:
    plan = make_plan(suite(unseen="domain"), tmp_path, {})
    assert len(plan.cells) == 4 * 2 * 2
    assert [cell.variant for cell in plan.cells[::4]] == IN_TURN
    left_out = [cell.config.unseen.domain for cell in plan.cells[::4] if cell.config.unseen]
    assert left_out == DOMAINS
    plan.write()
    record = json.loads(plan.folder.plan.read_text())
    assert record["table"] == {"kind": "unseen"}
    assert record["domains"] == DOMAINS
    assert len({cell.cell_id for cell in plan.cells}) == len(plan.cells)


def test_any_suite_can_be_asked_for_it() -> None:
    assert variants(suite().changed({"unseen": "domain"})) == IN_TURN
    assert variants(suite().changed({"unseen.domain": "fonts"})) == [""]
    assert variants(suite().changed({"unseen.clients": 2})) == [""]


def test_a_suite_without_the_key_has_the_cells_it_had() -> None:
    plain = plan_cells(suite())[0]
    assert "unseen" not in plain.config.as_record()
    unseen = plan_cells(suite(unseen={"clients": 0.5}))[0]
    assert unseen.config.as_record()["unseen"] == {"clients": 0.5}
    assert unseen.cell_id != plain.cell_id
    assert unseen.config.setting != plain.config.setting


def test_a_single_domain_is_the_only_one_tested(tmp_path: Path) -> None:
    plan = make_plan(suite(unseen={"domain": "fonts"}), tmp_path, {})
    plan.write()
    assert json.loads(plan.folder.plan.read_text())["domains"] == ["fonts"]


def test_variants_of_the_suite_are_crossed_with_the_domains(tmp_path: Path) -> None:
    sizes = [{"name": f"n={n}", "set": {"partition.samples": n}} for n in (10, 20)]
    plan = make_plan(suite(unseen="domain", variants=sizes), tmp_path, {})
    names = list(dict.fromkeys(cell.variant for cell in plan.cells))
    assert names == [f"n={n} {name}" for n in (10, 20) for name in IN_TURN]
    assert plan.suite.table.kind == "variants"
    assert {cell.config.partition.options["samples"] for cell in plan.cells if "n=10" in cell.variant} == {10}


def test_a_variant_can_leave_out_what_others_do_not() -> None:
    chosen = [
        {"name": "all seen", "set": {}},
        {"name": "none of fonts", "set": {"unseen.domain": "fonts"}},
        {"name": "each", "set": {"unseen": "domain"}},
    ]
    expected = ["all seen", "none of fonts", *(f"each {name}" for name in IN_TURN)]
    assert variants(suite(variants=chosen)) == expected


def test_the_record_of_the_partition_says_what_is_unseen() -> None:
    def setting(**changes: Any) -> str:
        return partition_record(plan_cells(suite(**changes))[0].config, None).setting

    eight = {"name": "by_domain", "clients": 8, "samples": 20}
    assert setting(unseen="domain") == "without mnist seed 0"
    assert setting(unseen={"domain": "fonts"}) == "without fonts seed 0"
    assert setting(unseen={"clients": 4}, partition=eight) == "4 clients unseen seed 0"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"unseen": "client"}, "unseen = 'client': write 'domain' for each in turn"),
        ({"unseen": {"clients": 1.5}}, "unseen.clients = 1.5: give a number of clients, or a share"),
        ({"unseen": {"clients": True}}, "unseen.clients = True: give a number of clients, or a share"),
        ({"unseen": {"clients": 0}}, "unseen.clients = 0: give a number of clients, or a share"),
        ({"unseen": {}}, "give the key 'domain' or the key 'clients', and not both"),
        ({"unseen": {"domain": "fonts", "clients": 2}}, "and not both"),
        ({"unseen": {"domains": "fonts"}}, "unknown key 'unseen.domains'; did you mean 'domain'"),
        ({"unseen": {"domain": "font"}}, "has no domain 'font'; did you mean 'fonts'"),
        (
            {"unseen": "domain", "evaluation": {"personal": True}},
            "evaluation.personal has nothing to",
        ),
        (
            {"unseen": "domain", "dataset": {"name": "cifar10"}},
            "dataset 'cifar10' has one; leave out",
        ),
        ({"table": {"kind": "unseen"}}, "the table kind 'unseen' needs the key 'unseen: domain'"),
        (
            {
                "unseen": "domain",
                "table": {"kind": "unseen"},
                "variants": [{"name": "n", "set": {"partition.samples": 9}}],
            },
            "no place for the suite's own variants; use the kind 'variants'",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as refusal:
        plan_cells(suite(**changes))
    assert sentence in str(refusal.value)
