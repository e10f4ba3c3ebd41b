"""The printed numbers: found by suite and method, and consistent in themselves."""

from importlib.resources import files
from statistics import fmean

import pytest
import yaml

from reports.published import printed_numbers

PAPERS = [
    yaml.safe_load(file.read_text(encoding="utf-8"))
    for file in sorted(files("reports").joinpath("published").iterdir(), key=lambda entry: entry.name)
]
ROWS = [
    (paper["paper"], suite, method, table["columns"], values)
    for paper in PAPERS
    for suite, table in paper["tables"].items()
    for method, values in table["rows"].items()
    if not isinstance(values[0], dict)
]


def test_there_are_numbers_of_both_papers() -> None:
    assert {paper["paper"] for paper in PAPERS} == {"fedlsa_aaai2025", "ggeur_cvpr2025"}


@pytest.mark.parametrize(("paper", "suite", "method", "columns", "values"), ROWS)
def test_every_row_is_found_as_it_stands_in_the_file(
    paper: str, suite: str, method: str, columns: list[object], values: list[float | None]
) -> None:
    found = printed_numbers(suite, method)
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
    wrapped, plain = (printed_numbers("office_home_lds", name) for name in ("ggeur+scaffold", "scaffold"))
    assert wrapped is not None and plain is not None
    assert (wrapped.average, plain.average) == (83.96, 74.82)
