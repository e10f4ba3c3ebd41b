"""The numbers and marks of tables from records, against numbers computed by hand."""

from pathlib import Path

import pytest
from scipy import stats

from tests.kit.run_folders import Planned
from tests.kit.tables import (
    FEDAVG,
    FEDLSA,
    FEDPROX,
    FIVE_FEDAVG,
    FIVE_FEDLSA,
    FIVE_FEDPROX,
    entry,
    make,
    notes,
    row,
    seeds,
    texts,
)


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
    average = entry(table, "FedAvg", "AVG")
    assert [average.mean, average.std, average.n] == pytest.approx([61, 1, 3])


def test_a_significant_lead_has_no_sign_and_no_footnote(tmp_path: Path) -> None:
    # apart by 10 points everywhere but for 0.1, so that every column has a clear winner
    ahead = [(0.90, 0.501), (0.921, 0.52), (0.94, 0.481), (0.911, 0.51), (0.93, 0.491)]
    table = make(tmp_path, seeds("fedavg", FIVE_FEDAVG) + seeds("fedlsa", ahead))
    for column in ("mnist", "fonts", "AVG"):
        assert entry(table, "FedLSA", column).mark == "best"
        assert "≈" not in entry(table, "FedLSA", column).signs
        assert entry(table, "FedAvg", column).mark == "second"


def test_a_difference_to_fedavg_is_marked_with_its_p(tmp_path: Path) -> None:
    cells = seeds("fedavg", FIVE_FEDAVG) + seeds("fedlsa", FIVE_FEDLSA) + seeds("fedprox", FIVE_FEDPROX)
    table = make(tmp_path, [*cells, *seeds("central", [(0.99, 0.99)] * 5)])
    gains = [0.0, 0.0, 2.0, -0.5, 1.0]  # AVG of FedProx minus AVG of FedAvg by seed
    p = stats.ttest_1samp(gains, 0).pvalue
    lsa, prox = entry(table, "FedLSA", "AVG"), entry(table, "FedProx", "AVG")
    assert (lsa.signs, prox.signs) == (("*",), ())
    assert lsa.p == pytest.approx(0, abs=1e-12)  # ten points at every seed
    assert prox.p == pytest.approx(p)
    # against FedLSA: FedAvg's differences are all −10 (p = 0), so FedProx's p is the larger, times one
    behind = stats.ttest_1samp([gain - 10 for gain in gains], 0).pvalue
    assert prox.p_best == pytest.approx(behind)
    assert entry(table, "FedAvg", "AVG").p is None and entry(table, "Central", "AVG").p is None
    assert table.reference == "FedAvg"
    assert any(
        note.startswith("* significantly different from FedAvg (paired t-test over the seeds' AVG")
        for note in notes(table)
    )


def test_domains_of_a_seed_are_no_replications(tmp_path: Path) -> None:
    """A gain that is the same on all domains of a seed counts once: over seeds × domains p would be tiny."""
    domains = tuple("abcdef")
    gains = [0.04, -0.01, 0.03, 0.02, 0.01]
    theirs = [(0.5 + seed / 100,) * 6 for seed in range(5)]
    ours = [tuple(value + gain for value in row) for row, gain in zip(theirs, gains, strict=True)]
    table = make(tmp_path, seeds("fedavg", theirs) + seeds("fedlsa", ours), domains=domains)
    found = entry(table, "FedLSA", "AVG")
    p = stats.ttest_1samp(gains, 0).pvalue
    assert found.p == pytest.approx(p) and p > 0.05
    assert stats.ttest_1samp(gains * 6, 0).pvalue < 0.001
    assert found.signs == ("≈",)


def test_four_seeds_have_intervals_and_no_stars(tmp_path: Path) -> None:
    table = make(tmp_path, seeds("fedavg", FIVE_FEDAVG[:4]) + seeds("fedlsa", FIVE_FEDLSA[:4]))
    average = entry(table, "FedLSA", "AVG")
    assert (average.p, average.p_best, average.signs) == (None, None, ("≈",))
    assert average.interval is not None
    assert any("or fewer than 5 seeds, with which nothing is tested" in note for note in notes(table))


def test_two_seeds_have_neither_interval_nor_test_and_the_table_says_so(tmp_path: Path) -> None:
    table = make(tmp_path, seeds("fedavg", FEDAVG[:2]) + seeds("fedlsa", FEDLSA[:2]))
    average = entry(table, "FedLSA", "AVG")
    assert (average.p, average.p_best, average.interval) == (None, None, None)
    assert "Too few seeds for stars: tests need at least 5, intervals 3." in notes(table)


def test_every_best_that_is_not_significantly_ahead_has_the_sign(tmp_path: Path) -> None:
    table = make(tmp_path, seeds("fedavg", FEDAVG) + seeds("fedprox", FEDPROX))
    bold = [entry for row in table.rows for entry in row.entries if entry.mark == "best"]
    assert bold and all("≈" in cell.signs for cell in bold)


def test_a_lead_that_is_not_significant_is_bold_with_a_sign(tmp_path: Path) -> None:
    # FedProx: 60, 62, 63, mean 61.67 against 61; differences of AVG 0, 0, 2
    table = make(tmp_path, seeds("fedavg", FEDAVG) + seeds("fedprox", FEDPROX))
    best = entry(table, "FedProx", "AVG")
    assert (best.text, best.mark, best.signs) == ("61.67 ± 1.53", "best", ("≈",))
    assert entry(table, "FedAvg", "AVG").signs == ()
    assert any(note.startswith("≈ not shown to be ahead of the runner-up") for note in notes(table))


def test_two_seeds_are_never_a_clear_lead(tmp_path: Path) -> None:
    table = make(tmp_path, seeds("fedavg", FEDAVG[:2]) + seeds("fedlsa", FEDLSA[:2]))
    assert entry(table, "FedLSA", "AVG").signs == ("≈",)


def test_one_seed_has_no_spread(tmp_path: Path) -> None:
    table = make(tmp_path, [Planned("fedavg", 0, (0.8, 0.4)), Planned("fedlsa", 0, (0.9, 0.5))])
    assert texts(table, "FedLSA") == ["90.00", "50.00", "70.00", "20.00", "+10.00"]
    assert entry(table, "FedLSA", "AVG").std is None
    assert entry(table, "FedLSA", "AVG").signs == ("≈",)
    assert "one seed" in table.caption and "±" not in table.caption


def test_equal_firsts_share_the_mark_and_leave_no_second(tmp_path: Path) -> None:
    cells = seeds("fedavg", FIVE_FEDAVG) + seeds("fedprox", FIVE_FEDLSA) + seeds("fedlsa", FIVE_FEDLSA)
    table = make(tmp_path, cells)
    for label in ("FedProx", "FedLSA"):
        assert (entry(table, label, "AVG").mark, entry(table, label, "AVG").signs) == ("best", ("≈", "*"))
    assert entry(table, "FedAvg", "AVG").mark == ""


def test_equal_seconds_share_the_mark(tmp_path: Path) -> None:
    cells = seeds("fedavg", FEDAVG) + seeds("fedprox", FEDAVG) + seeds("fedlsa", FEDLSA)
    table = make(tmp_path, cells)
    assert [entry(table, label, "AVG").mark for label in ("FedAvg", "FedProx", "FedLSA")] == [
        "second",
        "second",
        "best",
    ]


def test_the_smaller_spread_over_domains_is_the_better(tmp_path: Path) -> None:
    table = make(tmp_path, seeds("fedavg", [(0.8, 0.4)] * 3) + seeds("fedlsa", [(0.7, 0.5)] * 3))
    assert entry(table, "FedLSA", "STD").mark == "best"
    assert entry(table, "FedAvg", "STD").mark == "second"


def test_a_method_alone_wins_nothing(tmp_path: Path) -> None:
    table = make(tmp_path, seeds("fedavg", FEDAVG) + seeds("central", FEDLSA))
    assert {entry.mark for row in table.rows for entry in row.entries} == {""}


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
        assert {entry.mark for entry in row(table, label).entries} == {""}
    assert entry(table, "FedLSA", "mnist").mark == "best"
    assert "Bounds, not ranked: Local, Central." in notes(table)


def test_without_fedavg_there_is_no_delta_and_without_its_result_no_value(tmp_path: Path) -> None:
    assert "Δ" not in make(tmp_path / "a", seeds("fedlsa", FEDLSA)).columns
    table = make(tmp_path / "b", [Planned("fedavg", 0), Planned("fedlsa", 0, FEDLSA[0])])
    assert entry(table, "FedLSA", "Δ").missing


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
    found = {row.label: entry(table, row.label, "Δ") for row in table.rows}
    assert {label: (each.text, each.n, each.signs) for label, each in found.items()} == {
        "FedAvg": ("0.00", 2, ("2/3",)),
        "FedProx": ("0.00", 1, ("1/3",)),
        "FedLSA": ("+10.00", 2, ("2/3",)),
        "FedProto": ("–", 0, ()),
    }
    assert found["FedProto"].missing
    assert any(
        "Δ: AVG minus the AVG of FedAvg, mean over the seeds that both have." in n for n in notes(table)
    )


def test_own_accuracy_has_a_column_only_where_a_result_has_it(tmp_path: Path) -> None:
    cells = seeds("fedavg", FEDAVG) + seeds("fedproto", FEDLSA, personal=0.95)
    table = make(tmp_path, cells)
    assert table.columns[-1] == "Own"
    assert entry(table, "FedProto", "Own").text == "95.00 ± 0.00"
    assert (entry(table, "FedAvg", "Own").text, entry(table, "FedAvg", "Own").missing) == ("", False)


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


def test_a_run_that_has_just_begun_has_a_table_too(tmp_path: Path) -> None:
    table = make(tmp_path, [Planned("fedavg", 0), Planned("fedlsa", 0)])
    assert texts(table, "FedAvg") == ["–"] * 5
    assert "commit: unknown" in table.caption
