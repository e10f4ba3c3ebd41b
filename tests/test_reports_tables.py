"""Tables from records, against numbers computed by hand."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reports_builder import Planned, history, write_run
from scipy import stats

from bench.errors import UserError
from reports.records import load_run
from reports.summary import summary_table
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


def test_a_clear_lead_has_no_sign_of_noise_and_no_footnote_about_it(tmp_path: Path) -> None:
    # apart by 10 points everywhere but for 0.1, so that every column has a clear winner
    ahead = [(0.90, 0.501), (0.921, 0.52), (0.94, 0.481)]
    table = make(tmp_path, seeds("fedavg", FEDAVG) + seeds("fedlsa", ahead))
    for column in ("mnist", "fonts", "AVG"):
        assert cell(table, "FedLSA", column).mark == "best"
        assert "≈" not in cell(table, "FedLSA", column).signs
        assert cell(table, "FedAvg", column).mark == "second"


def test_a_difference_to_fedavg_is_marked_with_its_p(tmp_path: Path) -> None:
    cells = seeds("fedavg", FEDAVG) + seeds("fedlsa", FEDLSA) + seeds("fedprox", FEDPROX)
    table = make(tmp_path, [*cells, *seeds("central", [(0.99, 0.99)] * 3)])
    gains = [2.0, -2.0, -4.0, 4.0, 2.0, 2.0]  # FedProx minus FedAvg by seed and domain
    p = stats.ttest_1samp(gains, 0).pvalue
    lsa, prox = cell(table, "FedLSA", "AVG"), cell(table, "FedProx", "AVG")
    assert (lsa.signs, lsa.p) == (("*",), pytest.approx(0, abs=1e-12))  # ten points at every pair
    assert (prox.signs, prox.p) == ((), pytest.approx(p))
    # against FedLSA: FedAvg's differences are all −10 (p = 0), so FedProx's p is the larger, times one
    behind = stats.ttest_1samp([gain - 10 for gain in gains], 0).pvalue
    assert prox.p_best == pytest.approx(behind)
    assert cell(table, "FedAvg", "AVG").p is None and cell(table, "Central", "AVG").p is None
    assert table.reference == "FedAvg"
    assert any(note.startswith("* differs from FedAvg (paired t-test") for note in notes(table))


def test_two_seeds_have_neither_interval_nor_test_and_the_table_says_so(tmp_path: Path) -> None:
    table = make(tmp_path, seeds("fedavg", FEDAVG[:2]) + seeds("fedlsa", FEDLSA[:2]))
    average = cell(table, "FedLSA", "AVG")
    assert (average.p, average.p_best, average.interval) == (None, None, None)
    assert "Too few seeds for tests and intervals, which need 3." in notes(table)


def test_every_bold_cell_inside_the_noise_has_the_sign(tmp_path: Path) -> None:
    table = make(tmp_path, seeds("fedavg", FEDAVG) + seeds("fedprox", FEDPROX))
    bold = [cell for row in table.rows for cell in row.cells if cell.mark == "best"]
    assert bold and all("≈" in cell.signs for cell in bold)


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
        assert (cell(table, label, "AVG").mark, cell(table, label, "AVG").signs) == ("best", ("≈", "*"))
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


def test_delta_is_taken_at_the_seeds_that_both_rows_have(tmp_path: Path) -> None:
    cells = [
        *seeds("fedavg", FEDAVG[:2]),  # 60 and 62
        Planned("fedavg", 2, error="out of memory"),
        Planned("fedprox", 0, error="out of memory"),
        *(Planned("fedprox", seed, FEDPROX[seed]) for seed in (1, 2)),  # 62 and 63
        *seeds("fedlsa", FEDLSA),  # 70, 72 and 71
        *(Planned("fedproto", seed) for seed in (0, 1)),
        Planned("fedproto", 2, FEDLSA[2]),
    ]
    table = make(tmp_path, cells)
    found = {row.label: cell(table, row.label, "Δ") for row in table.rows}
    assert {label: (each.text, each.n, each.signs) for label, each in found.items()} == {
        "FedAvg": ("0.00", 2, ("2/3",)),
        "FedProx": ("0.00", 1, ("1/3",)),
        "FedLSA": ("+10.00", 2, ("2/3",)),
        "FedProto": ("–", 0, ()),
    }
    assert found["FedProto"].missing
    assert any("Δ: AVG minus that of FedAvg, mean over the seeds that both have." in n for n in notes(table))


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
    tuning = {"trials": 40, "search": "optuna", "space": "wide", "selected_on": "validation"}
    table = make(tmp_path, cells, tuning={**tuning, "methods": {"fedavg": {"trials": 40}}})
    said = "hyperparameters: tuned (40 trials a method, search optuna, space wide), selected on validation;"
    assert said in table.caption
    assert "validation: 20 % of train" in table.caption
    assert "commit: 0123456789ab-dirty." in table.caption


@pytest.mark.parametrize(
    ("tuning", "said"),
    [
        ({"trials": 8, "methods": {"fedavg": {"trials": 8}, "fedlsa": {"trials": 4}}}, "fedavg 8, fedlsa 4"),
        ({"methods": {"fedavg": {}}}, "hyperparameters: tuned;"),
        ({"search": "grid", "time_budget": None}, "hyperparameters: tuned (search grid);"),
        ({"trials": 8, "methods": ["fedavg"]}, "hyperparameters: tuned (8 trials a method);"),
    ],
)
def test_a_tuning_budget_is_said_however_much_of_it_is_known(
    tmp_path: Path, tuning: dict[str, Any], said: str
) -> None:
    assert said in make(tmp_path, seeds("fedavg", FEDAVG), tuning=tuning).caption


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


def test_a_run_as_published_shows_its_best_round_and_another_its_last(tmp_path: Path) -> None:
    published = Planned("ggeur", 0, FEDLSA[0], hyperparameters={"as_published": True})
    run = load_run(write_run(tmp_path, [Planned("fedavg", 0, FEDAVG[0]), published]))
    for cell in run.cells:
        best = dict.fromkeys(run.domains, 0.99)
        rounds = [{"round": 1, "test": best}, {"round": 2, "test": dict(cell.result["final"]["test"])}]
        told = {**cell.result, "oracle": {"round": 1, "avg": 0.99}}
        shown = [replace(cell, rounds=rounds, result=told).accuracy(domain) for domain in run.domains]
        expected = best if cell.as_published else cell.result["final"]["test"]
        assert shown == [expected[domain] for domain in run.domains]


def test_a_run_as_published_that_lost_its_best_round_has_no_number(tmp_path: Path) -> None:
    published = Planned("ggeur", 0, FEDLSA[0], hyperparameters={"as_published": True})
    result = write_run(tmp_path, [Planned("fedavg", 0, FEDAVG[0]), published]) / published.dir / "result.json"
    result.write_text(json.dumps({**json.loads(result.read_text()), "oracle": None}))
    table = domain_table(load_run(tmp_path))
    assert set(texts(table, "ggeur")) == {"–"}
    assert "No finite value, treated as missing: ggeur seed 0 on mnist, fonts." in notes(table)
    assert cell(summary_table(load_run(tmp_path), ""), "ggeur", "Oracle").missing


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
    statistics = summary_table(load_run(tmp_path), "")
    assert [row.signs for row in statistics.rows] == [(), (), ("†",)]
    for each in (table, statistics):
        assert any(note.startswith("† run as the paper's code does it") for note in notes(each))


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
    first, second, *_ = tables_of(load_run(write_run(tmp_path, cells)))
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
    table, *_ = tables_of(load_run(write_run(tmp_path, cells, **options)))
    assert table.columns == ("β=0.1", "β=0.1 printed", "β=0.1 diff", "β=0.3")
    assert texts(table, "FedAvg") == ["70.00 ± 0.00", "68.22", "+1.78", "75.00 ± 0.00"]
    assert any("second hand" in note for note in notes(table))


def test_an_unknown_kind_of_table_gets_the_nearest_name(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path, seeds("fedavg", FEDAVG), kind="domain"))
    with pytest.raises(UserError, match="did you mean 'domains'"):
        tables_of(run)


def test_own_accuracy_stands_beside_its_variant(tmp_path: Path) -> None:
    cells = seeds("fedavg", FEDAVG, variant="a") + seeds("fedproto", FEDLSA, variant="b", personal=0.95)
    table = variant_table(load_run(write_run(tmp_path, cells, kind="variants")))
    assert table.columns == ("a", "b", "b own")
    assert texts(table, "FedProto") == ["", "71.00 ± 1.00", "95.00 ± 0.00"]
    assert any("Own: mean over the clients" in note for note in notes(table))


ABLATION = {"kind": "ablation", "switches": {"compactness": "L_COM", "separation": "L_SEP"}}


def ablation_cells(variants: Sequence[str], parts: Sequence[tuple[bool, bool]]) -> list[Planned]:
    cells = [each for variant in variants for each in seeds("fedavg", FEDAVG, variant=variant)]
    for compactness, separation in parts:
        for variant in variants:
            switches = {"compactness": compactness, "separation": separation}
            label = f"{compactness:d}{separation:d}"
            cells += seeds("fedlsa", FEDLSA, label=label, variant=variant, hyperparameters=switches)
    return cells


def test_an_ablation_has_ticks_and_the_printed_numbers_of_the_same_parts(tmp_path: Path) -> None:
    parts = [(False, False), (True, False), (False, True), (True, True)]
    cells = ablation_cells(["digits", "office_caltech"], parts)
    table, *_ = tables_of(load_run(write_run(tmp_path, cells, suite="fedlsa_ablation", table=ABLATION)))
    assert table.columns[:5] == ("L_COM", "L_SEP", "digits", "digits printed", "digits diff")
    ticks = {row.label: [cell.text for cell in row.cells[:2]] for row in table.rows}
    assert ticks == {"FedAvg": ["", ""], "00": ["", ""], "10": ["✓", ""], "01": ["", "✓"], "11": ["✓", "✓"]}
    printed = {
        row.label: [cell(table, row.label, f"{name} printed").text for name in ("digits", "office_caltech")]
        for row in table.rows
    }
    assert printed == {
        "FedAvg": ["60.89", "53.20"],
        "00": ["60.89", "53.20"],
        "10": ["61.06", "59.18"],
        "01": ["61.21", "58.37"],
        "11": ["63.56", "60.22"],
    }
    assert cell(table, "11", "office_caltech diff").text == "+10.78"
    assert [cell(table, label, "L_COM").mean for label in ("FedAvg", "01", "10")] == [None, 0.0, 1.0]


def test_a_switch_that_no_row_has_gets_the_nearest_name(tmp_path: Path) -> None:
    layout = {"kind": "ablation", "switches": {"compctness": "L_COM"}}
    run = load_run(write_run(tmp_path, ablation_cells([""], [(True, True)]), table=layout))
    with pytest.raises(UserError, match="did you mean 'compactness'"):
        tables_of(run)


WRAPPED = {"kind": "wrapped", "wrapper": "ggeur"}


def test_with_and_without_a_wrapper_side_by_side(tmp_path: Path) -> None:
    cells = [
        *seeds("fedavg", FEDAVG),
        *seeds("ggeur+fedavg", FEDLSA, label="GGEUR+FedAvg"),
        *seeds("fedprox", FEDPROX),
        *seeds("ggeur+fedprox", FEDAVG[:2], label="GGEUR+FedProx"),
        *seeds("central", FEDLSA),
    ]
    table, *_ = tables_of(load_run(write_run(tmp_path, cells, table=WRAPPED)))
    assert table.headings == [(name, ["plain", "GGEUR", "gain"]) for name in ("mnist", "fonts", "AVG")]
    assert [[row.label for row in section] for section in table.sections] == [
        ["FedAvg", "FedProx"],
        ["Central"],
    ]
    assert texts(table, "FedAvg")[6:] == ["61.00 ± 1.00", "71.00 ± 1.00", "+10.00 ± 0.00"]
    # FedProx by seed: 60, 62, 63 without; 60, 62 with
    assert texts(table, "FedProx")[6:] == ["61.67 ± 1.53", "61.00 ± 1.41", "0.00 ± 0.00"]
    gain, partial = cell(table, "FedAvg", "AVG gain"), cell(table, "FedProx", "AVG gain")
    assert gain.signs == ("*",) and gain.p is not None and gain.p < 0.05
    assert (partial.signs, partial.p) == (("2/3",), None)
    assert texts(table, "Central")[7:] == ["", ""]
    assert any(note.startswith("* differs from the same method without ggeur") for note in notes(table))


def test_wrapped_rows_with_labels_of_their_own_have_columns_of_their_own(tmp_path: Path) -> None:
    cells = []
    for base in ("fedavg", "fedprox"):
        cells += seeds(base, FEDAVG)
        cells += seeds(f"ggeur+{base}", FEDLSA, label="step 1")
        cells += seeds(f"ggeur+{base}", FEDLSA, label="steps 1 and 2", hyperparameters={"two": True})
    table, *_ = tables_of(load_run(write_run(tmp_path, cells, table=WRAPPED)))
    assert table.headings[-1] == (
        "AVG",
        ["plain", "step 1", "step 1 gain", "steps 1 and 2", "steps 1 and 2 gain"],
    )
    assert [row.label for row in table.rows] == ["FedAvg", "FedProx"]


def test_wrapped_methods_over_variants_with_printed_numbers(tmp_path: Path) -> None:
    cells = []
    for variant in ("β=0.5", "β=0.01"):
        cells += seeds("fedavg", [(0.6,)] * 3, variant=variant)
        cells += seeds("ggeur+fedavg", [(0.7,)] * 3, variant=variant, label="GGEUR+FedAvg")
    options: dict[str, Any] = {"suite": "cifar100_label_skew", "domains": ("cifar100",), "table": WRAPPED}
    table, *_ = tables_of(load_run(write_run(tmp_path, cells, **options)))
    names = ["plain", "GGEUR", "gain", "plain printed", "GGEUR printed"]
    assert table.headings == [("β=0.5", names), ("β=0.01", names)]
    assert texts(table, "FedAvg")[2:5] == ["+10.00 ± 0.00", "81.41", "83.31"]
    assert texts(table, "FedAvg")[8:] == ["58.71", "75.72"]


def test_a_wrapped_method_without_its_base_is_a_row_too(tmp_path: Path) -> None:
    cells = seeds("fedavg", FEDAVG) + seeds("ggeur+moon", FEDLSA, label="GGEUR+MOON")
    table, *_ = tables_of(load_run(write_run(tmp_path, cells, table=WRAPPED)))
    assert [row.label for row in table.rows] == ["FedAvg", "GGEUR+MOON"]
    assert [text for text in texts(table, "GGEUR+MOON") if text] == [
        "92.00 ± 2.00",
        "50.00 ± 2.00",
        "71.00 ± 1.00",
    ]


def curves(method: str, levels: Sequence[float], sent: int, rounds: int = 15) -> list[Planned]:
    """Three seeds whose AVG is as given at rounds 5, 10 and 15."""
    curve = {5 * place: (level, level) for place, level in enumerate(levels, start=1)}
    final = (levels[-1], levels[-1])
    lines = history(curve, rounds, sent)
    options: dict[str, Any] = {"rounds": rounds, "history": lines}
    return [Planned(method, seed, final, **options) for seed in range(3)]


def test_rounds_and_bytes_until_fedavgs_final_accuracy(tmp_path: Path) -> None:
    cells = [
        *curves("fedavg", (0.3, 0.4, 0.5), sent=500_000),
        *curves("fedprox", (0.3, 0.55, 0.45), sent=1_000_000),
        *curves("fedlsa", (0.3, 0.4, 0.49), sent=1_000_000),
    ]
    table = summary_table(load_run(write_run(tmp_path, cells)), "")
    # 15 rounds × 2 × 0.5 MB; 10 rounds × 2 × 1 MB
    assert [cell(table, "FedAvg", name).text for name in ("Rounds", "MB")] == ["15.0 ± 0.0", "15.0 ± 0.0"]
    assert [cell(table, "FedProx", name).text for name in ("Rounds", "MB")] == ["10.0 ± 0.0", "20.0 ± 0.0"]
    assert [cell(table, "FedLSA", name).text for name in ("Rounds", "MB")] == ["not reached"] * 2


def test_a_target_that_some_seeds_reach_is_said_to_be_reached_by_some(tmp_path: Path) -> None:
    cells = curves("fedavg", (0.3, 0.4, 0.5), 1) + curves("fedlsa", (0.3, 0.6, 0.6), 1)
    cells[-1] = Planned("fedlsa", 2, (0.4, 0.4), rounds=15, history=history({15: (0.4, 0.4)}, 15, 1))
    table = summary_table(load_run(write_run(tmp_path, cells)), "")
    rounds = cell(table, "FedLSA", "Rounds")
    assert (rounds.text, rounds.n, rounds.signs) == ("10.0 ± 0.0", 2, ("2/3",))
    assert "2/3 2 of 3 seeds." in notes(table)


def test_a_history_that_breaks_off_tells_nothing_about_the_target(tmp_path: Path) -> None:
    cells = curves("fedavg", (0.3, 0.4, 0.5), 1) + curves("fedlsa", (0.3, 0.4, 0.6), 1)
    run_dir = write_run(tmp_path, cells)
    lines = run_dir / cells[3].dir / "rounds.jsonl"
    lines.write_text(lines.read_text()[:-30])  # in the middle of round 15, where the target was reached
    holes = run_dir / cells[4].dir / "rounds.jsonl"
    kept = [line for line in holes.read_text().splitlines() if json.loads(line)["round"] != 7]
    holes.write_text("\n".join(kept))
    table = summary_table(load_run(run_dir), "")
    rounds = cell(table, "FedLSA", "Rounds")
    assert (rounds.text, rounds.n, rounds.signs) == ("15.0", 1, ("1/3",))
    assert cell(table, "FedLSA", "95 % interval").text == "[60.00, 60.00]"  # the result itself is whole


def test_worst_domain_last_rounds_and_oracle(tmp_path: Path) -> None:
    cells = seeds("fedavg", FEDAVG, last5=0.58, oracle=0.7) + seeds("fedlsa", FEDLSA, last5=math.nan)
    table = summary_table(load_run(write_run(tmp_path, cells)), "")
    assert cell(table, "FedAvg", "Worst").text == "40.00 ± 2.00"
    assert cell(table, "FedAvg", "Last 5").text == "58.00 ± 0.00"
    assert cell(table, "FedAvg", "Oracle").text == "70.00 ± 0.00"
    assert cell(table, "FedLSA", "Last 5").missing and cell(table, "FedLSA", "Oracle").missing
    assert cell(table, "FedAvg", "Oracle").mark == ""
    assert texts(table, "FedLSA")[:3] == ["[68.52, 73.48]", "<0.001", "best"]  # 71 ± 4.303 / √3


def test_the_statistics_say_how_intervals_and_tests_are_made(tmp_path: Path) -> None:
    said = notes(summary_table(load_run(write_run(tmp_path, seeds("fedavg", FEDAVG))), ""))
    assert said[:2] == [
        "95 % interval: of the mean AVG over seeds, Student's t below 5 seeds and percentile bootstrap "
        "(2000 resamples) from 5 on; intervals and tests need 3 seeds.",
        "p: paired t-test over seeds × domains, corrected after Holm over the methods; with several domains, "
        "dependent within a seed, p is a little too small.",
    ]


def test_statistics_of_two_seeds_say_too_few(tmp_path: Path) -> None:
    cells = seeds("fedavg", FEDAVG[:2]) + seeds("fedlsa", FEDLSA[:2])
    table = summary_table(load_run(write_run(tmp_path, cells)), "")
    assert texts(table, "FedLSA")[:3] == ["too few seeds", "too few seeds", "best"]


@pytest.mark.parametrize(("kind", "setting"), [("ablation", "switches"), ("wrapped", "wrapper")])
def test_a_plan_without_the_settings_of_its_table_says_what_to_do(
    tmp_path: Path, kind: str, setting: str
) -> None:
    run = load_run(write_run(tmp_path, seeds("fedavg", FEDAVG), kind=kind))
    with pytest.raises(UserError, match=f"has no table.{setting}: run the suite again"):
        tables_of(run)
