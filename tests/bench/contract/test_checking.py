"""Reports of the contract, and what is remembered of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bench
from bench.cli.templates import METHOD
from bench.contract import VERSION, Report, passed, standing
from bench.contract.report import Finding, Verdict
from bench.contract.rules import RULES
from bench.errors import UserError
from bench.suite.methods import METHODS
from methods.fedprox import FedProx
from tests.kit import contract_broken as broken

SECTIONS = {
    "The interface",
    "Padding",
    "Stacking",
    "Randomness",
    "Purity",
    "Privacy",
    "Traffic",
    "Resume",
    "Divergence",
    "Neutral setting",
    "Hyperparameters",
}
"""Of the guide to contributing."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_every_rule_has_a_name_of_its_own_a_sentence_and_a_section_of_the_guide() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.demand.endswith(".") for rule in RULES)
    assert {rule.section for rule in RULES} == SECTIONS


def test_a_method_that_passes_is_remembered_until_its_code_changes(tmp_path: Path, cache: Path) -> None:
    file = tmp_path / "near_fedavg.py"
    file.write_text(METHOD.filled("near_fedavg"))
    assert standing(str(file)) == "unchecked"
    report = bench.check(str(file))
    assert report.passed, str(report)
    assert report.model == "mlp"
    assert standing(str(file)) == standing("near_fedavg") == standing(METHODS.load("near_fedavg")) == "passed"
    assert passed(str(file))
    (note,) = (cache / "contract").iterdir()
    assert json.loads(note.read_text()) == {
        "method": "near_fedavg",
        "contract": VERSION,
        "passed": True,
        "findings": [],
    }
    file.write_text(file.read_text() + "\n# changed\n")
    assert standing(str(file)) == "unchecked"


def test_a_method_that_fails_is_remembered_too(cache: Path) -> None:
    assert standing(broken.RefusesAll) == "unchecked"
    assert not bench.check(broken.RefusesAll).passed
    assert standing(broken.RefusesAll) == "failed"


def test_a_check_with_other_hyperparameters_is_not_remembered(cache: Path) -> None:
    assert not bench.check(broken.RefusesAll, {"weighting": "uniform"}).passed
    assert standing(broken.RefusesAll) == "unchecked"


def test_an_unreadable_note_counts_as_none(cache: Path) -> None:
    bench.check(broken.RefusesAll)
    (note,) = (cache / "contract").iterdir()
    note.write_text("{")
    assert standing(broken.RefusesAll) == "unchecked"


@pytest.mark.parametrize("method", ["fedprox", FedProx, "ggeur+scaffold"])
def test_shipped_methods_have_passed(method: str, cache: Path) -> None:
    assert standing(method) == "passed"
    assert not cache.exists()


def test_a_shipped_wrapper_around_an_unchecked_method_is_unchecked(cache: Path) -> None:
    name = METHODS.register(broken.RefusesAll)
    assert standing(f"ggeur+{name}") == "unchecked"


def test_an_unknown_method_is_a_mistake_of_the_user() -> None:
    with pytest.raises(UserError, match="unknown method 'fedprx'; did you mean 'fedprox'"):
        bench.check("fedprx")


KEPT = Verdict("rounds", "It runs.")
BROKEN = Verdict("padding", "Padding counts nothing.", (Finding("padding", "it counts <all>", "Padding"),))
SKIPPED = Verdict("hosts", "Hosts agree.", not_applied="one client holds all data")


def test_a_report_as_text_has_a_line_per_rule_and_a_summary() -> None:
    report = Report("Mine", (KEPT, BROKEN, SKIPPED), "mlp", 1.25)
    assert str(report).splitlines() == [
        "✓ rounds: It runs.",
        "✗ padding: it counts <all> (see CONTRIBUTING.md, 'Padding')",
        "– hosts: Hosts agree. (not applied: one client holds all data)",
        "Mine does not pass the contract: 1 rule kept, 1 broken, 1 not applied in 1.2 s",
    ]
    assert report.findings == BROKEN.findings
    assert not report.passed
    assert Report("Mine", (KEPT, SKIPPED)).passed


def test_a_report_in_a_notebook_is_a_table() -> None:
    html = Report("Mine", (KEPT, BROKEN))._repr_html_()
    assert html.count("<tr>") == 2
    assert "it counts &lt;all&gt;" in html
