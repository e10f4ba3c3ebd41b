"""Tables from records, against numbers computed by hand."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from reports_builder import Planned, write_run

from bench.errors import UserError
from reports.records import load_run
from reports.table import Cell, Row, Table
from reports.tables import domain_table, tables_of, variant_table

FEDAVG = [(0.80, 0.40), (0.82, 0.42), (0.84, 0.38)]
FEDLSA = [(0.90, 0.50), (0.92, 0.52), (0.94, 0.48)]
FEDPROX = [(0.82, 0.38), (0.78, 0.46), (0.86, 0.40)]


def seeds(method: str, tests: Sequence[Sequence[float]], **options: Any) -> list[Planned]:
    return [Planned(method, seed, test, **options) for seed, test in enumerate(tests)]


def make(path: Path, cells: Sequence[Planned], **options: Any) -> Table:
    return domain_table(load_run(write_run(path, cells, **options)))


def row(table: Table, label: str) -> Row:
    return next(row for row in table.rows if row.label == label)


def cell(table: Table, label: str, column: str) -> Cell:
    return row(table, label).cells[table.columns.index(column)]


def texts(table: Table, label: str) -> list[str]:
    return [cell.text for cell in row(table, label).cells]


def notes(table: Table) -> list[str]:
    return [f"{note.sign} {note.text}".strip() for note in table.footnotes]


def test_means_spreads_and_differences_by_hand(tmp_path: Path) -> None:
    table = make(tmp_path, seeds("fedavg", FEDAVG) + seeds("fedlsa", FEDLSA))
    assert table.columns == ("mnist", "fonts", "AVG", "STD", "Δ")
    # AVG of FedAvg by seed: 60, 62, 61; STD over its two domains: 20, 20, 23
    assert texts(table, "FedAvg") == ["82.00 ± 2.00", "40.00 ± 2.00", "61.00 ± 1.00", "21.00 ± 1.73", "0.00"]
    assert texts(table, "FedLSA") == [
        "92.00 ± 2.00",
        "50.00 ± 2.00",
        "71.00 ± 1.00",
        "21.00 ± 1.73",
        "+10.00",
    ]
    average = cell(table, "FedAvg", "AVG")
    assert (average.mean, average.std, average.n) == (pytest.approx(61), pytest.approx(1), 3)


def test_a_clear_lead_has_no_sign_and_no_footnote(tmp_path: Path) -> None:
    table = make(tmp_path, seeds("fedavg", FEDAVG) + seeds("fedlsa", FEDLSA))
    best = cell(table, "FedLSA", "AVG")
    assert (best.mark, best.signs) == ("best", ())
    assert cell(table, "FedAvg", "AVG").mark == "second"
    assert not any("noise" in note for note in notes(table))


def test_a_lead_inside_the_noise_is_bold_only_with_a_sign(tmp_path: Path) -> None:
    # FedProx: 60, 62, 63, mean 61.67 against 61; differences by seed and domain 2, -2, -4, 4, 2, 2
    table = make(tmp_path, seeds("fedavg", FEDAVG) + seeds("fedprox", FEDPROX))
    best = cell(table, "FedProx", "AVG")
    assert (best.text, best.mark, best.signs) == ("61.67 ± 1.53", "best", ("≈",))
    assert cell(table, "FedAvg", "AVG").signs == ()
    assert any(note.startswith("≈ lead inside the noise") for note in notes(table))


def test_two_seeds_are_never_a_clear_lead(tmp_path: Path) -> None:
    table = make(tmp_path, seeds("fedavg", FEDAVG[:2]) + seeds("fedlsa", FEDLSA[:2]))
    assert cell(table, "FedLSA", "AVG").signs == ("≈",)


def test_one_seed_has_no_spread(tmp_path: Path) -> None:
    table = make(tmp_path, [Planned("fedavg", 0, (0.8, 0.4)), Planned("fedlsa", 0, (0.9, 0.5))])
    assert texts(table, "FedLSA") == ["90.00", "50.00", "70.00", "20.00", "+10.00"]
    assert cell(table, "FedLSA", "AVG").std is None
    assert cell(table, "FedLSA", "AVG").signs == ("≈",)
    assert "one seed" in table.caption and "±" not in table.caption


def test_equal_firsts_share_the_mark_and_leave_no_second(tmp_path: Path) -> None:
    cells = seeds("fedavg", FEDAVG) + seeds("fedprox", FEDLSA) + seeds("fedlsa", FEDLSA)
    table = make(tmp_path, cells)
    for label in ("FedProx", "FedLSA"):
        assert (cell(table, label, "AVG").mark, cell(table, label, "AVG").signs) == ("best", ("≈",))
    assert cell(table, "FedAvg", "AVG").mark == ""


def test_equal_seconds_share_the_mark(tmp_path: Path) -> None:
    cells = seeds("fedavg", FEDAVG) + seeds("fedprox", FEDAVG) + seeds("fedlsa", FEDLSA)
    table = make(tmp_path, cells)
    assert [cell(table, label, "AVG").mark for label in ("FedAvg", "FedProx", "FedLSA")] == [
        "second",
        "second",
        "best",
    ]


def test_the_smaller_spread_over_domains_is_the_better(tmp_path: Path) -> None:
    table = make(tmp_path, seeds("fedavg", [(0.8, 0.4)] * 3) + seeds("fedlsa", [(0.7, 0.5)] * 3))
    assert cell(table, "FedLSA", "STD").mark == "best"
    assert cell(table, "FedAvg", "STD").mark == "second"


def test_a_method_alone_wins_nothing(tmp_path: Path) -> None:
    table = make(tmp_path, seeds("fedavg", FEDAVG) + seeds("central", FEDLSA))
    assert {cell.mark for row in table.rows for cell in row.cells} == {""}


def test_bounds_stand_apart_and_are_never_marked(tmp_path: Path) -> None:
    cells = (
        seeds("central", [(0.99, 0.99)] * 3)
        + seeds("fedavg", FEDAVG)
        + seeds("local", [(0.98, 0.98)] * 3)
        + seeds("fedlsa", FEDLSA)
    )
    table = make(tmp_path, cells)
    assert [[row.label for row in section] for section in table.sections] == [
        ["Local"],
        ["FedAvg", "FedLSA"],
        ["Central"],
    ]
    for label in ("Local", "Central"):
        assert row(table, label).bound
        assert {cell.mark for cell in row(table, label).cells} == {""}
    assert cell(table, "FedLSA", "mnist").mark == "best"
    assert "Bounds, not ranked: Local, Central." in notes(table)


def test_missing_failed_and_partial_cells_are_shown_and_explained(tmp_path: Path) -> None:
    cells = [
        *seeds("fedavg", FEDAVG),
        Planned("fedprox", 0, FEDPROX[0]),
        Planned("fedprox", 1, error="CUDA out of memory"),
        Planned("fedprox", 2, FEDPROX[2]),
        *(Planned("fedlsa", seed) for seed in range(3)),
    ]
    table = make(tmp_path, cells)
    assert texts(table, "FedLSA") == ["–"] * 5
    assert all(cell.missing and cell.n == 0 for cell in row(table, "FedLSA").cells)
    partial = cell(table, "FedProx", "AVG")  # 60 and 63
    assert (partial.text, partial.n) == ("61.50 ± 2.12", 2)
    assert "2/3" in partial.signs
    assert "2/3 2 of 3 seeds." in notes(table)
    assert "Failed: FedProx seed 1: CUDA out of memory" in notes(table)
    assert "Not finished: FedLSA seeds 0, 1, 2." in notes(table)


def test_a_value_that_is_not_finite_is_missing_and_named(tmp_path: Path) -> None:
    cells = seeds("fedavg", [*FEDAVG[:2], (0.84, math.nan)]) + seeds("fedlsa", [(math.inf, 0.5)] * 3)
    table = make(tmp_path, cells)
    assert texts(table, "FedAvg")[:3] == ["82.00 ± 2.00", "41.00 ± 1.41", "61.00 ± 1.41"]
    assert [cell.n for cell in row(table, "FedAvg").cells[:3]] == [3, 2, 2]
    assert cell(table, "FedAvg", "mnist").signs == ()
    assert cell(table, "FedAvg", "fonts").signs == ("2/3",)
    assert texts(table, "FedLSA") == ["–", "50.00 ± 0.00", "–", "–", "–"]
    assert "No finite value, treated as missing: FedAvg seed 2 on fonts." in notes(table)


def test_without_fedavg_there_is_no_delta_and_without_its_result_no_value(tmp_path: Path) -> None:
    assert "Δ" not in make(tmp_path / "a", seeds("fedlsa", FEDLSA)).columns
    table = make(tmp_path / "b", [Planned("fedavg", 0), Planned("fedlsa", 0, FEDLSA[0])])
    assert cell(table, "FedLSA", "Δ").missing


def test_own_accuracy_has_a_column_only_where_a_result_has_it(tmp_path: Path) -> None:
    cells = seeds("fedavg", FEDAVG) + seeds("fedproto", FEDLSA, personal=0.95)
    table = make(tmp_path, cells)
    assert table.columns[-1] == "Own"
    assert cell(table, "FedProto", "Own").text == "95.00 ± 0.00"
    assert (cell(table, "FedAvg", "Own").text, cell(table, "FedAvg", "Own").missing) == ("", False)


def test_printed_numbers_and_our_difference_to_them(tmp_path: Path) -> None:
    tests = [(0.82, 0.80, 0.65, 0.33)] * 3  # AVG 65.00; the paper prints 63.56
    cells = seeds("fedlsa", tests) + seeds("scaffold", tests)
    table = make(tmp_path, cells, suite="digits", domains=("mnist", "usps", "svhn", "syn"))
    assert table.columns[-2:] == ("Printed", "Diff")
    assert texts(table, "FedLSA")[-2:] == ["63.56", "+1.44"]
    assert texts(table, "scaffold")[-2:] == ["", ""]
    assert any(
        note.startswith("Printed: fedlsa_aaai2025 (read in the paper's own text") for note in notes(table)
    )


def test_printed_numbers_of_other_domains_are_not_compared(tmp_path: Path) -> None:
    table = make(tmp_path, seeds("fedlsa", FEDLSA), suite="digits")
    assert "Printed" not in table.columns


def test_the_caption_says_how_the_numbers_were_made(tmp_path: Path) -> None:
    table = make(tmp_path, seeds("fedavg", FEDAVG))
    for statement in (
        "quickstart (version 1): Digits, two domains.",
        "mean ± sample std over 3 seeds",
        "final round",
        "hyperparameters: suite defaults",
        "validation: none held out",
        "rounds: 20",
        "data checksum: fedcba987654;",
        "commit: 0123456789ab.",
    ):
        assert statement in table.caption


def test_tuning_validation_and_a_dirty_commit_are_said(tmp_path: Path) -> None:
    cells = seeds("fedavg", FEDAVG, validation=0.2, commit="0123456789abcdef-dirty")
    table = make(tmp_path, cells, tuning={"trials": 40, "search": "optuna"})
    assert "hyperparameters: tuned (trials: 40, search: optuna)" in table.caption
    assert "validation: 20 % of train" in table.caption
    assert "commit: 0123456789ab-dirty." in table.caption


def test_statements_that_differ_between_records_are_mixed_with_a_footnote(tmp_path: Path) -> None:
    cells = [
        *seeds("fedavg", FEDAVG),
        *seeds("fedlsa", FEDLSA[:2], commit=None, checksum="f" * 64, rounds=10),
    ]
    table = make(tmp_path, cells)
    for statement in ("rounds: mixed", "data checksum: mixed", "commit: mixed", "their number is mixed"):
        assert statement in table.caption
    assert "Mixed commit: 0123456789ab (FedAvg); unknown (FedLSA)." in notes(table)
    assert "Mixed number of rounds: 20 (FedAvg); 10 (FedLSA)." in notes(table)
    assert "Mixed number of seeds: 3 (FedAvg); 2 (FedLSA)." in notes(table)


def test_a_run_as_published_is_marked_and_not_ranked(tmp_path: Path) -> None:
    cells = [
        *seeds("fedavg", FEDAVG),
        *seeds("fedprox", FEDPROX),
        *seeds("ggeur", FEDLSA, hyperparameters={"as_published": True}),
    ]
    table = make(tmp_path, cells)
    assert row(table, "ggeur").signs == ("†",)
    assert cell(table, "ggeur", "AVG").mark == ""
    assert cell(table, "FedProx", "AVG").mark == "best"
    assert any(note.startswith("† run as the paper's code does it") for note in notes(table))


def test_as_published_is_marked_if_only_a_later_variant_has_begun(tmp_path: Path) -> None:
    cells = [
        Planned("ggeur", 0, variant="β=0.5"),
        Planned("ggeur", 0, FEDLSA[0], variant="β=0.1", hyperparameters={"as_published": True}),
    ]
    table = variant_table(load_run(write_run(tmp_path, cells, kind="variants")))
    assert row(table, "ggeur").signs == ("†",)


def test_a_run_that_has_just_begun_has_a_table_too(tmp_path: Path) -> None:
    table = make(tmp_path, [Planned("fedavg", 0), Planned("fedlsa", 0)])
    assert texts(table, "FedAvg") == ["–"] * 5
    assert "commit: unknown" in table.caption


def test_one_domain_table_a_variant(tmp_path: Path) -> None:
    cells = seeds("fedavg", FEDAVG, variant="a") + seeds("fedavg", FEDLSA, variant="b")
    first, second = tables_of(load_run(write_run(tmp_path, cells)))
    assert (first.variant, second.variant) == ("a", "b")
    assert texts(first, "FedAvg")[2] == "61.00 ± 1.00"
    assert texts(second, "FedAvg")[2] == "71.00 ± 1.00"
    assert "quickstart b (version 1)" in second.caption


def test_methods_by_variants_with_the_average_in_each(tmp_path: Path) -> None:
    cells = [
        *seeds("fedavg", FEDAVG, variant="β=0.5"),
        *seeds("fedlsa", FEDLSA, variant="β=0.5"),
        *seeds("fedavg", FEDPROX, variant="β=0.1"),
        *seeds("fedlsa", FEDAVG[:2], variant="β=0.1"),
    ]
    table = variant_table(load_run(write_run(tmp_path, cells, kind="variants")))
    assert table.columns == ("β=0.5", "β=0.1")
    assert texts(table, "FedAvg") == ["61.00 ± 1.00", "61.67 ± 1.53"]
    assert texts(table, "FedLSA") == ["71.00 ± 1.00", "61.00 ± 1.41"]
    assert [cell.mark for cell in row(table, "FedLSA").cells] == ["best", "second"]
    assert [cell.signs for cell in row(table, "FedAvg").cells] == [(), ("≈",)]


def test_printed_numbers_stand_beside_their_variant(tmp_path: Path) -> None:
    cells = [
        *seeds("fedavg", [(0.70,)] * 3, variant="β=0.1"),
        *seeds("fedavg", [(0.75,)] * 3, variant="β=0.3"),
    ]
    options: dict[str, Any] = {"kind": "variants", "suite": "cifar100_label_skew", "domains": ("cifar100",)}
    (table,) = tables_of(load_run(write_run(tmp_path, cells, **options)))
    assert table.columns == ("β=0.1", "β=0.1 printed", "β=0.1 diff", "β=0.3")
    assert texts(table, "FedAvg") == ["70.00 ± 0.00", "68.22", "+1.78", "75.00 ± 0.00"]
    assert any("second hand" in note for note in notes(table))


def test_an_unknown_kind_of_table_gets_the_nearest_name(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path, seeds("fedavg", FEDAVG), kind="domain"))
    with pytest.raises(UserError, match="did you mean 'domains'"):
        tables_of(run)
