"""ε as a column, and attackers in the caption."""

from pathlib import Path
from typing import Any

from bench.records.reader import load_run
from reports.tables.kinds import variant_table
from tests.kit.run_folders import write_run
from tests.kit.tables import FEDAVG, FEDLSA, FEDPROX, entry, make, notes, seeds

DP = {"delta": 1e-5, "amplification": "none", "noise_multiplier": 1.0}


def private(label: str, epsilon: float, **how: Any) -> list[Any]:
    history = [{"round": number, "metrics": {"epsilon": epsilon * number / 2}} for number in (1, 2)]
    options = {"hyperparameters": DP, **how}
    return seeds("dp+fedavg", FEDPROX, label=label, history=history, **options)


def test_epsilon_of_the_last_round_is_a_column(tmp_path: Path) -> None:
    table = make(tmp_path, [*seeds("fedavg", FEDAVG), *private("z = 1", 12.345), *private("z = 4", 2.0)])
    assert [entry(table, label, "ε").text for label in ("FedAvg", "z = 1", "z = 4")] == ["", "12.35", "2.00"]
    (note,) = [note for note in notes(table) if note.startswith("ε: ")]
    assert "δ = 1e-05, without credit for the sampling of clients" in note


def test_different_settings_are_all_named(tmp_path: Path) -> None:
    other = private("other", 3.0, hyperparameters={**DP, "delta": 1e-3, "amplification": "poisson"})
    (note,) = [note for note in notes(make(tmp_path, [*private("one", 2.0), *other])) if note.startswith("ε")]
    assert "δ = 1e-05, without" in note
    assert "δ = 0.001, as if every client were drawn by itself" in note


def test_without_such_rows_there_is_no_column(tmp_path: Path) -> None:
    table = make(tmp_path, seeds("fedavg", FEDAVG))
    assert "ε" not in table.columns
    assert not any(note.startswith("ε") for note in notes(table))


def test_the_caption_names_the_attackers(tmp_path: Path) -> None:
    flips = {"kind": "sign_flip", "share": 0.3, "scale": 4.0}
    table = make(tmp_path, seeds("fedavg", FEDAVG, attackers=flips))
    assert "attackers: 30 % of the clients send updates times −4;" in table.caption
    honest = make(tmp_path / "honest", seeds("fedavg", FEDAVG))
    assert "attackers" not in honest.caption


def test_attackers_that_differ_between_variants_are_told_apart(tmp_path: Path) -> None:
    labels = {"kind": "label_flip", "share": 0.25}
    cells = [
        *seeds("fedavg", FEDLSA, variant="honest"),
        *seeds("fedavg", FEDAVG, variant="flipped", attackers=labels),
    ]
    table = variant_table(load_run(write_run(tmp_path, cells, kind="variants")))
    assert "attackers: mixed;" in table.caption
    (note,) = [note for note in notes(table) if note.startswith("Mixed attackers")]
    assert "none (FedAvg honest)" in note
    assert "25 % of the clients train on flipped labels (FedAvg flipped)" in note
