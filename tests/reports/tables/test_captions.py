"""What stands above and below a table: how its numbers were made, and what is missing."""

import math
from pathlib import Path
from typing import Any

import pytest

from bench.records.reader import load_run
from reports.tables.kinds import domain_table, variant_table
from reports.tables.summary import summary_table
from tests.kit.run_folders import CHECKSUM, Planned, write_run
from tests.kit.tables import FEDAVG, FEDLSA, FEDPROX, entry, make, notes, row, seeds, texts


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
    assert all(entry.missing and entry.n == 0 for entry in row(table, "FedLSA").entries)
    partial = entry(table, "FedProx", "AVG")  # 60 and 63
    assert (partial.text, partial.n) == ("61.50 ± 2.12", 2)
    assert "2/3" in partial.signs
    assert "2/3 2 of 3 seeds." in notes(table)
    assert "Failed: FedProx seed 1: CUDA out of memory" in notes(table)
    assert "Not finished: FedLSA seeds 0, 1, 2." in notes(table)


def test_a_value_that_is_not_finite_is_missing_and_named(tmp_path: Path) -> None:
    cells = seeds("fedavg", [*FEDAVG[:2], (0.84, math.nan)]) + seeds("fedlsa", [(math.inf, 0.5)] * 3)
    table = make(tmp_path, cells)
    assert texts(table, "FedAvg")[:3] == ["82.00 ± 2.00", "41.00 ± 1.41", "61.00 ± 1.41"]
    assert [entry.n for entry in row(table, "FedAvg").entries[:3]] == [3, 2, 2]
    assert entry(table, "FedAvg", "mnist").signs == ()
    assert entry(table, "FedAvg", "fonts").signs == ("2/3",)
    assert texts(table, "FedLSA") == ["–", "50.00 ± 0.00", "–", "–", "–"]
    assert "Not finite, treated as missing: FedAvg seed 2 on fonts." in notes(table)


def test_replies_that_were_left_out_are_counted(tmp_path: Path) -> None:
    history = [{"round": number, "clients": 3, "dropped": number} for number in (1, 2, 3)]
    sound = seeds("fedavg", FEDAVG)
    diverged = seeds("fedprox", FEDPROX[:1], history=history, dropped=6)
    said = "Client replies dropped because they contained NaN or infinity: FedProx seed 0 (6 of 9)."
    assert said in notes(make(tmp_path / "some", [*sound, *diverged]))
    assert not any("left out" in note for note in notes(make(tmp_path / "none", sound)))


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
    said = "hyperparameters: tuned (40 trials per method, search optuna, space wide), selected on validation;"
    assert said in table.caption
    assert "validation: 20 % of train" in table.caption
    assert "commit: 0123456789ab-dirty." in table.caption


@pytest.mark.parametrize(("checksum", "said"), [(None, ""), (CHECKSUM, ""), ("0", ", on other data")])
def test_a_choice_on_other_data_is_said(tmp_path: Path, checksum: str | None, said: str) -> None:
    tuning = {"selected_on": "validation", "methods": {"fedavg": {"data_checksum": checksum}}}
    table = make(tmp_path, seeds("fedavg", FEDAVG), tuning=tuning)
    assert f"hyperparameters: tuned, selected on validation{said};" in table.caption


@pytest.mark.parametrize(
    ("tuning", "said"),
    [
        ({"trials": 8, "methods": {"fedavg": {"trials": 8}, "fedlsa": {"trials": 4}}}, "fedavg 8, fedlsa 4"),
        ({"methods": {"fedavg": {}}}, "hyperparameters: tuned;"),
        ({"search": "grid", "time_budget": None}, "hyperparameters: tuned (search grid);"),
        ({"trials": 8, "methods": ["fedavg"]}, "hyperparameters: tuned (8 trials per method);"),
    ],
)
def test_a_tuning_budget_is_said_however_much_of_it_is_known(
    tmp_path: Path, tuning: dict[str, Any], said: str
) -> None:
    assert said in make(tmp_path, seeds("fedavg", FEDAVG), tuning=tuning).caption


def test_a_row_that_was_tuned_to_a_bound_is_marked(tmp_path: Path) -> None:
    chosen = {"fedavg": {"at_bound": {"optimiser.lr": "upper"}}, "fedlsa": {"at_bound": "damaged"}}
    cells = [*seeds("fedavg", FEDAVG), *seeds("fedlsa", FEDLSA)]
    table = make(tmp_path, cells, tuning={"trials": 8, "methods": chosen})
    assert (row(table, "FedAvg").signs, row(table, "FedLSA").signs) == (("⊣",), ())
    assert "tuned to an end of the search range: FedAvg optimiser.lr (upper);" in table.caption
    said = "⊣ tuned to an end of its search range: FedAvg optimiser.lr (upper). A better value may lie beyond"
    assert any(note.startswith(said) and "bench tune --widen" in note for note in notes(table))
    assert not any("⊣" in note for note in notes(make(tmp_path / "none", cells)))


def test_the_seeds_of_a_choice_and_wider_ranges_are_said(tmp_path: Path) -> None:
    chosen = {
        "fedavg": {"selection": {"seeds": 3}, "widened": {"optimiser.lr": [0.001, 1.0]}},
        "fedlsa": {"selection": {"seeds": 1}},
    }
    table = make(tmp_path, seeds("fedavg", FEDAVG), tuning={"trials": 8, "seeds": "auto", "methods": chosen})
    assert "8 trials per method, seeds per configuration by the rule auto (1, more for" in table.caption
    assert "within its spread: fedavg 3, fedlsa 1)" in table.caption
    assert "ranges made wider during the search: fedavg optimiser.lr 0.001–1.0" in table.caption


def test_statements_that_differ_between_records_are_mixed_with_a_footnote(tmp_path: Path) -> None:
    cells = [
        *seeds("fedavg", FEDAVG),
        *seeds("fedlsa", FEDLSA[:2], commit=None, checksum="f" * 64, rounds=10),
    ]
    table = make(tmp_path, cells)
    for statement in ("rounds: mixed", "data checksum: mixed", "commit: mixed", "numbers of seeds differ"):
        assert statement in table.caption
    assert "Mixed commit: 0123456789ab (FedAvg); unknown (FedLSA)." in notes(table)
    assert "Mixed number of rounds: 20 (FedAvg); 10 (FedLSA)." in notes(table)
    assert "Mixed number of seeds: 3 (FedAvg); 2 (FedLSA)." in notes(table)


def test_a_footnote_does_not_name_all_rows_of_a_large_majority(tmp_path: Path) -> None:
    usual = [cell for number in range(9) for cell in seeds(f"usual{number}", FEDAVG)]
    table = make(tmp_path, [*usual, *seeds("fedlsa", FEDLSA, rounds=10)])
    assert "Mixed number of rounds: 10 (FedLSA); 20 (all other rows)." in notes(table)


def test_the_caption_names_the_encoder_that_was_used(tmp_path: Path) -> None:
    without = make(tmp_path / "without", seeds("fedavg", FEDAVG))
    assert "encoder" not in without.caption
    encoder = {"name": "timm:resnet18", "normalised": True}
    scaled = make(tmp_path / "scaled", seeds("fedavg", FEDAVG, encoder=encoder))
    assert "encoder: timm:resnet18, features scaled to length 1; hyperparameters:" in scaled.caption
    other = seeds("fedlsa", FEDLSA, encoder={"name": "vit"})
    mixed = make(tmp_path / "mixed", seeds("fedavg", FEDAVG, encoder=encoder) + other)
    assert "encoder: mixed;" in mixed.caption
    assert "Mixed encoder: timm:resnet18, features scaled to length 1 (FedAvg); vit (FedLSA)." in notes(mixed)


def test_of_two_references_the_first_counts_and_a_note_says_so(tmp_path: Path) -> None:
    cells = [*seeds("fedavg", FEDAVG, label="FedAvg (a)"), *seeds("fedavg", FEDPROX, label="FedAvg (b)")]
    run = load_run(write_run(tmp_path, [*cells, *seeds("fedlsa", FEDLSA)]))
    said = "The reference is FedAvg (a), the first of the rows FedAvg (a), FedAvg (b)."
    assert said in notes(domain_table(run)) and said in notes(summary_table(run, ""))
    assert entry(domain_table(run), "FedAvg (a)", "Δ").text == "0.00"
    alone = make(tmp_path / "alone", seeds("fedavg", FEDAVG) + seeds("fedlsa", FEDLSA))
    assert not [note for note in notes(alone) if "The reference is" in note]


def test_several_variants_of_one_reference_are_one_reference(tmp_path: Path) -> None:
    cells = [*seeds("fedavg", FEDAVG, variant="β=0.1"), *seeds("fedavg", FEDAVG, variant="β=0.5")]
    table = variant_table(load_run(write_run(tmp_path, cells, kind="variants")))
    assert not [note for note in notes(table) if "The reference is" in note]
