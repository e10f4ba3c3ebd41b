"""`bench docs`: the pages of the methods in docs/methods."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.method_pages.descriptions import descriptions
from bench.records.results_file import read_results
from bench.suite.methods import METHODS, WRAPPERS
from reports.docs import Described, pages, write_docs
from tests.kit.places import REPOSITORY
from tests.kit.site import two_runs

pytestmark = pytest.mark.xdist_group("docs")

COMMITTED = REPOSITORY / "docs" / "methods"


@pytest.fixture(scope="module")
def described() -> list[Described]:
    return list(descriptions())


def test_the_committed_pages_are_up_to_date(described: list[Described]) -> None:
    runs = [read_results(file) for file in sorted((REPOSITORY / "results").glob("*.jsonl"))]
    made = pages(described, runs)
    found = {file.name: file.read_text(encoding="utf-8") for file in COMMITTED.iterdir()}
    differing = sorted(name for name in made | found if made.get(name) != found.get(name))
    assert differing == [], "docs/methods is out of date: run `make docs` and commit what it writes"


def test_every_method_and_wrapper_has_a_page(described: list[Described]) -> None:
    assert [each.name for each in described] == [*METHODS.names(), *WRAPPERS.names()]
    by_name = {each.name: each for each in described}
    fedprox, scaffold, ggeur = by_name["fedprox"], by_name["scaffold"], by_name["ggeur"]
    assert fedprox.neutral == "Equals FedAvg at `mu: 0.0`, bit for bit."
    assert fedprox.examination.rounds.up == ("model",) and not fedprox.examination.refused
    assert scaffold.examination.private == ("control",)
    ((sentence, refused),) = scaffold.examination.refused.items()
    assert "plain SGD" in sentence and refused == ("SGD with momentum", "Adam")
    assert "covariances" in ggeur.examination.before.up and "inner" not in ggeur.info.text.split("\n")[0]
    assert "inner" not in [each.name for each in ggeur.info.hyperparameters]
    assert "a CNN" not in ggeur.examination.accepted
    assert "quickstart_embeddings" in ggeur.suites["by_domain"]


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("central", "Baselines and bounds"),
        ("fedclip", "Prompts and adapters of a CLIP model"),
        ("ffa_lora", "LoRA branches on a frozen backbone"),
        ("fed3r", "One round"),
        ("fpl", "Prototypes and anchors"),
        ("fedproto", "Prototypes and anchors"),
        ("ditto", "Personalised models"),
        ("fedpac", "Personalised models"),
        ("fedyogi", "Global model: the server's step"),
        ("fedlc", "Global model: the clients' training"),
        ("scaffold", "Global model: clients and server"),
        ("dp", "Wrappers"),
    ],
)
def test_groups_follow_from_what_a_method_does(described: list[Described], name: str, group: str) -> None:
    assert {each.name: each.group for each in described}[name] == group


def test_results_stand_on_the_pages_of_their_methods(described: list[Described], tmp_path: Path) -> None:
    runs = two_runs(tmp_path)
    made = pages(described, runs)
    row = next(line for line in made["fedlsa.md"].splitlines() if line.startswith("| pacs"))
    assert [cell.strip() for cell in row.split("|")][2:6] == ["FedLSA", "71.00 ± 0.79", "+10.00", "1 of 4"]
    assert "None in [results]" in made["feddyn.md"]


def test_pages_of_methods_that_are_gone_are_removed(described: list[Described], tmp_path: Path) -> None:
    prox = next(each for each in described if each.name == "fedprox")
    gone = replace(prox, info=replace(prox.info, name="gone"))
    write_docs([prox, gone], [], tmp_path)
    (tmp_path / "notes.md").write_text("written by hand")
    assert write_docs([prox], [], tmp_path) == tmp_path / "README.md"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["README.md", "fedprox.md", "notes.md"]
