"""The printed numbers: found by suite and method, and consistent in themselves."""

from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import yaml

from bench.records.reader import load_run
from bench.suite.loading import load_suite
from bench.suite.planning import plan_cells
from reports.page.papers import paper_content
from reports.published.printed import printed_numbers, threshold
from reports.tables.kinds import domain_table, variant_table
from tests.kit.run_folders import Planned, write_run

PAPERS = [
    yaml.safe_load(file.read_text(encoding="utf-8"))
    for file in sorted(files("reports").joinpath("published").iterdir(), key=lambda entry: entry.name)
    if file.name.endswith(".yaml")
]
ROWS = [
    (paper["paper"], suite, method, table["columns"], each["values"], each.get("set", {}))
    for paper in PAPERS
    for suite, table in paper["tables"].items()
    for method, row in table["rows"].items()
    for each in (row if isinstance(row[0], dict) else [{"values": row}])
]


def test_there_are_numbers_of_both_papers() -> None:
    assert {paper["paper"] for paper in PAPERS} == {"fedlsa_aaai2025", "ggeur_cvpr2025"}


@pytest.mark.parametrize(("paper", "suite", "method", "columns", "values", "settings"), ROWS)
def test_every_row_is_found_as_it_stands_in_the_file(
    paper: str,
    suite: str,
    method: str,
    columns: list[object],
    values: list[float | None],
    settings: dict[str, Any],
) -> None:
    found = printed_numbers(suite, method, settings)
    assert found is not None and found.paper == paper
    if columns == ["average"]:
        assert (found.average, found.columns) == (values[0], {})
        return
    assert list(found.columns) == [str(column) for column in columns]
    assert list(found.columns.values()) == values[: len(columns)]
    if len(values) > len(columns):
        domains = [value for value in found.columns.values() if value is not None]
        assert found.average == values[-1]
        assert fmean(domains) == pytest.approx(found.average, abs=0.02)


def test_numbers_read_in_the_papers() -> None:
    fedlsa = printed_numbers("office_caltech", "fedlsa")
    assert fedlsa is not None
    assert fedlsa.columns == {"caltech": 55.80, "amazon": 64.74, "webcam": 60.34, "dslr": 60.00}
    assert fedlsa.average == 60.22
    by_beta = printed_numbers("cifar100_label_skew", "fedfa")
    assert by_beta is not None
    assert by_beta.columns == {"0.5": 81.98, "0.1": 74.68, "0.01": None}
    assert by_beta.average is None
    assert by_beta.trust.startswith("second hand")


@pytest.mark.parametrize("suite", ["digits", "office_caltech", "pacs"])
def test_every_printed_row_of_fedlsas_tables_can_be_run(suite: str) -> None:
    paper = next(each for each in PAPERS if each["paper"] == "fedlsa_aaai2025")
    printed = set(paper["tables"][suite]["rows"])
    assert printed <= {cell.method for cell in plan_cells(load_suite(suite))}
    assert len(printed) == 9


def test_fedavg_with_plain_sgd_is_not_the_papers_fedavg() -> None:
    def found(momentum: float) -> bool:
        optimiser = {"name": "sgd", "lr": 0.02, "momentum": momentum}
        return printed_numbers("office_caltech", "fedavg", {"optimiser": optimiser}) is not None

    assert found(0.9)
    assert not found(0.0)
    assert printed_numbers("office_caltech", "fedavg", {"optimiser": None}) is not None


@pytest.mark.parametrize(("level", "verdict"), [(0.96, "96.00, passed"), (0.94, "94.00, failed")])
def test_a_table_says_whether_a_threshold_is_reached(level: float, verdict: str, tmp_path: Path) -> None:
    cells = [
        Planned(method, seed, (level,), variant=variant)
        for method in ("fedavg", "ggeur+fedavg")
        for variant in ("β=0.1", "β=0.5")
        for seed in range(3)
    ]
    run = write_run(tmp_path, cells, kind="variants", suite="cifar10_label_skew", domains=("cifar10",))
    found = [note.text for note in variant_table(load_run(run)).footnotes if "Threshold" in note.text]
    assert found == [f"Threshold of ggeur_cvpr2025: ggeur+fedavg, β=0.1 should reach 95.00: {verdict}."]


def test_thresholds_are_of_rows_that_can_be_run() -> None:
    goals = [goal for paper in PAPERS for goal in paper.get("thresholds", ())]
    assert len(goals) == 3
    for goal in goals:
        cells = plan_cells(load_suite(goal["suite"]))
        assert (goal["method"], goal.get("variant", "")) in {(cell.method, cell.variant) for cell in cells}
        assert threshold(goal["suite"], goal["method"], goal.get("variant", "")) is not None
    assert threshold("cifar10_label_skew", "ggeur+fedavg", "β=0.5") is None


def test_what_no_paper_prints_is_none() -> None:
    assert printed_numbers("quickstart", "fedavg") is None
    assert printed_numbers("digits", "scaffold") is None


@pytest.mark.parametrize(
    ("compactness", "separation", "digits", "office_caltech"),
    [
        (False, False, 60.89, 53.20),
        (True, False, 61.06, 59.18),
        (False, True, 61.21, 58.37),
        (True, True, 63.56, 60.22),
    ],
)
def test_a_row_of_the_ablation_is_found_by_its_parts(
    compactness: bool, separation: bool, digits: float, office_caltech: float
) -> None:
    parts = {"lam": 0.7, "compactness": compactness, "separation": separation}
    found = printed_numbers("fedlsa_ablation", "fedlsa", parts)
    assert found is not None
    assert found.columns == {"digits": digits, "office_caltech": office_caltech}


def test_a_row_of_the_ablation_needs_its_parts() -> None:
    assert printed_numbers("fedlsa_ablation", "fedlsa") is None


def test_wrapped_methods_are_found_by_their_whole_name() -> None:
    names, whole = ("ggeur+scaffold", "scaffold"), {"step2": True}
    wrapped, plain = (printed_numbers("office_home_lds", name, whole) for name in names)
    assert wrapped is not None and plain is not None
    assert (wrapped.average, plain.average) == (83.96, 74.82)


def test_the_suite_of_ggeurs_printed_averages_runs_each_of_their_methods_once_as_a_whole() -> None:
    rows = {(cell.method, cell.label): cell.config for cell in plan_cells(load_suite("office_home_lds"))}
    found = [
        (method, label)
        for (method, label), config in rows.items()
        if printed_numbers("office_home_lds", method, config.method.hyperparameters)
    ]
    assert sorted(method for method, _ in found) == sorted(
        row[2] for row in ROWS if row[1] == "office_home_lds"
    )
    assert not any("step 1" in label for _, label in found)


@pytest.fixture
def both_steps(tmp_path: Path) -> Path:
    """FedAdam, and GGEUR around it with step 1 alone and as a whole."""
    domains = ("art", "clipart")
    cells = [
        Planned("fedadam", 0, (0.6, 0.6)),
        Planned("ggeur+fedadam", 0, (0.7, 0.7), label="step 1", hyperparameters={"step2": False}),
        Planned("ggeur+fedadam", 0, (0.8, 0.8), label="whole", hyperparameters={"step2": True}),
    ]
    return write_run(tmp_path, cells, domains, "office_home_lds")


def test_numbers_of_the_whole_method_stand_beside_the_whole_method_alone(both_steps: Path) -> None:
    table = domain_table(load_run(both_steps))
    place = table.columns.index("Printed")
    shown = {row.label: row.entries[place].text for row in table.rows}
    assert shown == {"fedadam": "65.59", "step 1": "", "whole": "84.20"}


def test_the_page_has_them_beside_the_same_rows(both_steps: Path) -> None:
    run = load_run(both_steps)
    lines = {(cell.method, cell.label): place for place, cell in enumerate(run.cells)}
    content = paper_content(run, lines, {"": 0})
    assert content is not None
    assert [(pair["line"], pair["printed"]) for pair in content["pairs"]] == [(0, 65.59), (2, 84.20)]
