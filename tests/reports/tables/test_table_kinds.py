"""Tables of each kind and the statistics beside them, against numbers computed by hand."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from bench.records.reader import load_run
from reports.tables.kinds import tables_of, variant_table
from reports.tables.summary import summary_table
from tests.kit.run_folders import Planned, history, write_run
from tests.kit.tables import (
    FEDAVG,
    FEDLSA,
    FEDPROX,
    FIVE_FEDAVG,
    FIVE_FEDLSA,
    entry,
    notes,
    row,
    seeds,
    texts,
)


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
    assert [entry.mark for entry in row(table, "FedLSA").entries] == ["best", "second"]
    assert [entry.signs for entry in row(table, "FedAvg").entries] == [(), ("≈",)]


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
    assert any("Own: accuracy on each client's own test data" in note for note in notes(table))


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
    ticks = {row.label: [entry.text for entry in row.entries[:2]] for row in table.rows}
    assert ticks == {"FedAvg": ["", ""], "00": ["", ""], "10": ["✓", ""], "01": ["", "✓"], "11": ["✓", "✓"]}
    printed = {
        row.label: [entry(table, row.label, f"{name} printed").text for name in ("digits", "office_caltech")]
        for row in table.rows
    }
    assert printed == {
        "FedAvg": ["60.89", "53.20"],
        "00": ["60.89", "53.20"],
        "10": ["61.06", "59.18"],
        "01": ["61.21", "58.37"],
        "11": ["63.56", "60.22"],
    }
    assert entry(table, "11", "office_caltech diff").text == "+10.78"
    assert [entry(table, label, "L_COM").mean for label in ("FedAvg", "01", "10")] == [None, 0.0, 1.0]


def test_a_switch_that_no_row_has_gets_the_nearest_name(tmp_path: Path) -> None:
    layout = {"kind": "ablation", "switches": {"compctness": "L_COM"}}
    run = load_run(write_run(tmp_path, ablation_cells([""], [(True, True)]), table=layout))
    with pytest.raises(UserError, match="did you mean 'compactness'"):
        tables_of(run)


WRAPPED = {"kind": "wrapped", "wrapper": "ggeur"}


def test_with_and_without_a_wrapper_side_by_side(tmp_path: Path) -> None:
    cells = [
        *seeds("fedavg", FIVE_FEDAVG),
        *seeds("ggeur+fedavg", FIVE_FEDLSA, label="GGEUR+FedAvg"),
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
    assert texts(table, "FedAvg")[6:] == ["61.00 ± 0.71", "71.00 ± 0.71", "+10.00 ± 0.00"]
    # FedProx by seed: 60, 62, 63 without; 60, 62 with
    assert texts(table, "FedProx")[6:] == ["61.67 ± 1.53", "61.00 ± 1.41", "0.00 ± 0.00"]
    gain, partial = entry(table, "FedAvg", "AVG gain"), entry(table, "FedProx", "AVG gain")
    assert gain.signs == ("*",) and gain.p is not None and gain.p < 0.05
    assert (partial.signs, partial.p) == (("2/3",), None)
    assert texts(table, "Central")[7:] == ["", ""]
    assert any(
        note.startswith("* significantly different from the same method without ggeur")
        for note in notes(table)
    )


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
    assert [entry(table, "FedAvg", name).text for name in ("Rounds", "MB")] == ["15.0 ± 0.0", "15.0 ± 0.0"]
    assert [entry(table, "FedProx", name).text for name in ("Rounds", "MB")] == ["10.0 ± 0.0", "20.0 ± 0.0"]
    assert [entry(table, "FedLSA", name).text for name in ("Rounds", "MB")] == ["not reached"] * 2


def test_a_target_that_some_seeds_reach_is_said_to_be_reached_by_some(tmp_path: Path) -> None:
    cells = curves("fedavg", (0.3, 0.4, 0.5), 1) + curves("fedlsa", (0.3, 0.6, 0.6), 1)
    cells[-1] = Planned("fedlsa", 2, (0.4, 0.4), rounds=15, history=history({15: (0.4, 0.4)}, 15, 1))
    table = summary_table(load_run(write_run(tmp_path, cells)), "")
    rounds = entry(table, "FedLSA", "Rounds")
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
    rounds = entry(table, "FedLSA", "Rounds")
    assert (rounds.text, rounds.n, rounds.signs) == ("15.0", 1, ("1/3",))
    assert entry(table, "FedLSA", "95 % interval").text == "[60.00, 60.00]"  # the result itself is whole


def test_intervals_tests_and_the_worst_domain(tmp_path: Path) -> None:
    cells = seeds("fedavg", FIVE_FEDAVG) + seeds("fedlsa", FIVE_FEDLSA) + seeds("fedprox", FEDPROX)
    table = summary_table(load_run(write_run(tmp_path, cells)), "")
    assert entry(table, "FedAvg", "Worst").text == "40.00 ± 1.58"
    assert texts(table, "FedLSA")[1:3] == ["<0.001", "best"]
    assert texts(table, "FedProx")[:3] == ["[57.87, 65.46]", "too few seeds", "too few seeds"]  # three seeds


def test_the_statistics_say_how_intervals_and_tests_are_made(tmp_path: Path) -> None:
    said = notes(summary_table(load_run(write_run(tmp_path, seeds("fedavg", FEDAVG))), ""))
    assert said[:2] == [
        "95 % interval: Student's, of the mean AVG over seeds. Intervals need at least 3 seeds, tests 5.",
        "p: paired t-test over the seeds' AVG, Holm-corrected over the methods.",
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
    with pytest.raises(UserError, match=f"has no table.{setting}; run the suite again"):
        tables_of(run)
