"""Several runs in one report: united where they are comparable, refused with the reason where not."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from bench.records.reader import Run, load_run
from reports.combine.merge import merge_runs
from reports.tables.kinds import domain_table
from reports.tables.rank_table import ranking_table
from tests.kit.cli import call_bench
from tests.kit.run_folders import Planned, write_run

LEVELS = {"fedavg": 0.5, "fedprox": 0.6, "fedlsa": 0.7}


def cells_of(method: str, seeds: Sequence[int] = (0, 1, 2), **options: Any) -> list[Planned]:
    level = LEVELS[method]
    return [
        Planned(method, seed, (level, level + seed / 100), **{"partition_hash": f"p{seed}", **options})
        for seed in seeds
    ]


def runs_of(tmp_path: Path, *runs: Sequence[Planned], **options: Any) -> list[Run]:
    return [
        load_run(write_run(tmp_path / name, cells, **options))
        for name, cells in zip("abc", runs, strict=False)
    ]


def test_runs_of_one_suite_become_one_table(tmp_path: Path) -> None:
    first, second = runs_of(tmp_path, cells_of("fedavg"), cells_of("fedlsa"))
    (merged,) = merge_runs([first, second])
    table = domain_table(merged)
    assert [row.label for row in table.rows] == ["FedAvg", "FedLSA"]
    assert [row.entries[0].text for row in table.rows] == ["50.00 ± 0.00", "70.00 ± 0.00"]
    assert "mixed" not in table.caption


def test_more_seeds_of_a_method_join_its_row_and_a_cell_in_both_counts_once(tmp_path: Path) -> None:
    first, second = runs_of(tmp_path, cells_of("fedavg", [0, 1]), cells_of("fedavg", [1, 2, 3]))
    (merged,) = merge_runs([first, second])
    assert [cell.seed for cell in merged.cells] == [0, 1, 2, 3]


def test_of_a_cell_in_both_the_finished_one_counts(tmp_path: Path) -> None:
    unfinished = [Planned("fedavg", 0, error="out of memory"), *cells_of("fedavg", [1])]
    first, second = runs_of(tmp_path, unfinished, cells_of("fedavg", [0]))
    (merged,) = merge_runs([first, second])
    assert [cell.result is not None for cell in merged.cells] == [True, True]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rounds": 10}, "training.rounds is 20 in {a} and 10 in {b}"),
        ({"dataset": "digits"}, "dataset.name is digits_mini in {a} and digits in {b}"),
        ({"checksum": "0" * 64}, "data checksum of seed 0, seed 1, seed 2 is fedcba987654 in {a} and 0000"),
        ({"partition_hash": "other"}, "partition hash of seed 0 is p0 in {a} and other in {b}"),
        ({"validation": 0.2}, "training.validation is 0.0 in {a} and 0.2 in {b}"),
        (
            {"hyperparameters": {"as_published": True}},
            "selection rule is the final round in {a} and the best round on test (as published) in {b}",
        ),
    ],
)
def test_what_is_not_comparable_is_refused_with_the_reason(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    first, second = runs_of(tmp_path, cells_of("fedavg"), cells_of("fedlsa", **change))
    with pytest.raises(UserError) as caught:
        merge_runs([first, second])
    assert said.format(a=tmp_path / "a", b=tmp_path / "b") in str(caught.value)
    assert "these runs of quickstart are not comparable" in str(caught.value)
    assert "--mix" in str(caught.value)


def test_a_run_with_both_kinds_of_selection_counts_as_one_of_the_final_round(tmp_path: Path) -> None:
    published = cells_of("fedlsa", hyperparameters={"as_published": True})
    both, honest, other = runs_of(tmp_path, cells_of("fedavg") + published, cells_of("fedprox"), published)
    assert len(merge_runs([both, honest])) == 1
    with pytest.raises(UserError, match=r"selection rule is the final round .* and the best round on test"):
        merge_runs([both, other])


def with_models(run_directory: Path, cells: Sequence[Planned], models: Mapping[str, dict[str, Any]]) -> Run:
    """A run in which methods have models of their own."""
    write_run(run_directory, cells)
    for cell in cells:
        if cell.method in models:
            file = run_directory / cell.dir / "config.json"
            file.write_text(json.dumps({**json.loads(file.read_text()), "model": models[cell.method]}))
    return load_run(run_directory)


def test_rows_with_models_of_their_own_may_be_in_one_run_alone(tmp_path: Path) -> None:
    own = {"fedlsa": {"name": "head", "layers": 2}}
    first = with_models(tmp_path / "a", cells_of("fedavg"), {})
    second = with_models(tmp_path / "b", cells_of("fedavg") + cells_of("fedlsa"), own)
    assert [cell.method for cell in merge_runs([first, second])[0].cells] == ["fedavg"] * 3 + ["fedlsa"] * 3


def test_another_model_in_the_same_row_is_refused_also_at_other_seeds(tmp_path: Path) -> None:
    first = with_models(tmp_path / "a", cells_of("fedlsa", [0]), {})
    second = with_models(tmp_path / "b", cells_of("fedlsa", [1]), {"fedlsa": {"name": "head"}})
    with pytest.raises(UserError, match=r"model\.name of FedLSA is cnn in .* and head in "):
        merge_runs([first, second])


def test_a_model_that_was_set_for_one_run_alone_is_refused(tmp_path: Path) -> None:
    first = load_run(write_run(tmp_path / "a", cells_of("fedavg"), set={"model.layers": 2}))
    second = load_run(write_run(tmp_path / "b", cells_of("fedlsa"), set={"training.rounds": 20}))
    with pytest.raises(UserError, match=r"model is model\.layers = 2 in .* and as in the suite in "):
        merge_runs([first, second])


def test_a_key_that_only_one_side_has_is_no_difference(tmp_path: Path) -> None:
    newer = cells_of("fedlsa", training={"participation": 1.0})
    assert len(merge_runs(runs_of(tmp_path, cells_of("fedavg"), newer))) == 1


def test_another_tuning_budget_or_version_is_refused(tmp_path: Path) -> None:
    tuned = {"trials": 8, "search": "optuna", "methods": {"fedavg": {"trials": 8}}}
    plain = load_run(write_run(tmp_path / "plain", cells_of("fedavg")))
    few = load_run(write_run(tmp_path / "few", cells_of("fedlsa"), tuning=tuned))
    more = {**tuned, "methods": {"fedprox": {"trials": 16}}}
    many = load_run(write_run(tmp_path / "many", cells_of("fedprox"), tuning=more))
    newer = load_run(write_run(tmp_path / "newer", cells_of("fedlsa"), version=2))
    with pytest.raises(UserError, match=f"tuning budget is none in {plain.name} and some in {few.name}"):
        merge_runs([plain, few])
    with pytest.raises(UserError, match=f"tuning trials is 8 in {few.name} and 16 in {many.name}"):
        merge_runs([few, many])
    with pytest.raises(UserError, match=r"suite version is 1 in .* and 2 in "):
        merge_runs([plain, newer])


def test_other_hyperparameters_in_the_same_row_are_refused_and_two_rows_if_mixed(tmp_path: Path) -> None:
    ours = cells_of("fedlsa", [0], hyperparameters={"lam": 0.7})
    theirs = cells_of("fedlsa", [1], hyperparameters={"lam": 0.5})
    first, second = runs_of(tmp_path, ours, theirs)
    (merged,) = merge_runs([first, second], mix=True)
    assert [(cell.label, cell.seed) for cell in merged.cells] == [("FedLSA (a)", 0), ("FedLSA (b)", 1)]
    theirs[0].seed = 0
    again = load_run(write_run(tmp_path / "again", theirs))
    with pytest.raises(
        UserError, match=r"method\.hyperparameters\.lam of FedLSA seed 0 is 0\.7 in .* and 0\.5"
    ):
        merge_runs([first, again])


def test_what_is_mixed_all_the_same_is_said_in_the_caption(tmp_path: Path) -> None:
    first, second = runs_of(tmp_path, cells_of("fedavg"), cells_of("fedlsa", rounds=10))
    (merged,) = merge_runs([first, second], mix=True)
    table = domain_table(merged)
    assert "rounds: mixed" in table.caption
    assert any("20 (FedAvg); 10 (FedLSA)" in note.text for note in table.footnotes)


def suite_run(tmp_path: Path, suite: str, methods: Sequence[str], dataset: str) -> Run:
    cells = [cell for method in methods for cell in cells_of(method, dataset=dataset)]
    return load_run(write_run(tmp_path / suite, cells, suite=suite))


def test_runs_of_several_suites_are_ranked_over_them(tmp_path: Path) -> None:
    runs = [suite_run(tmp_path, name, list(LEVELS), name) for name in ("digits", "pacs")]
    assert merge_runs(runs) == runs
    table = ranking_table(runs)
    assert table is not None and table.columns == (
        "Average rank",
        "IQM lead",
        "Within 1 point",
        "digits",
        "pacs",
    )
    assert [(row.label, row.method, row.entries[0].text) for row in table.rows] == [
        ("FedLSA", "fedlsa", "1.00"),
        ("FedProx", "fedprox", "2.00"),
        ("FedAvg", "fedavg", "3.00"),
    ]
    assert [entry.text for entry in next(table.rows).entries[2:]] == ["100 %", "70.50", "70.50"]
    notes = " ".join(note.text for note in table.footnotes)
    # two datasets: Friedman's statistic is 4, p = exp(−2) = 0.135; 2.343 · sqrt(12 / 12) = 2.34
    assert "finds no difference at 0.05 (p = 0.135)" in notes and "average ranks: 2.34." in notes


def test_one_dataset_or_two_methods_are_not_ranked(tmp_path: Path) -> None:
    alike = [suite_run(tmp_path, name, list(LEVELS), "digits") for name in ("digits", "other")]
    assert ranking_table(alike) is None
    short = suite_run(tmp_path, "short", ["fedavg", "fedlsa"], "pacs")
    assert ranking_table([alike[0], short]) is None


def test_the_command_writes_merged_tables_beside_the_runs_and_names_them(tmp_path: Path) -> None:
    for name, method in (("a", "fedavg"), ("b", "fedlsa")):
        write_run(tmp_path / name, cells_of(method))
    done = call_bench("report", "a", "b", "--runs", tmp_path, "--format", "md")
    assert (done.code, done.err) == (0, "")
    file = tmp_path / "merged" / "quickstart" / "tables" / "quickstart.md"
    assert str(file) in done.out
    assert "| FedAvg" in file.read_text() and "| FedLSA" in file.read_text()
    assert not (tmp_path / "a" / "tables").exists()


def test_the_command_refuses_and_can_be_told_to_mix(tmp_path: Path) -> None:
    write_run(tmp_path / "a", cells_of("fedavg"))
    write_run(tmp_path / "b", cells_of("fedlsa", rounds=10))
    refused = call_bench("report", "a", "b", "--runs", tmp_path)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.count("\n") == 1 and "training.rounds is 20 in" in refused.err
    assert not (tmp_path / "merged").exists()
    mixed = call_bench("report", "a", "b", "--runs", tmp_path, "--mix", "--out", tmp_path / "out")
    assert mixed.code == 0 and (tmp_path / "out" / "tables" / "quickstart.csv").exists()


def test_the_command_ranks_over_suites_and_gives_each_its_own_folder(tmp_path: Path) -> None:
    for name in ("digits", "pacs"):
        suite_run(tmp_path, name, list(LEVELS), name)
    done = call_bench(
        "report", "digits", "pacs", "--runs", tmp_path, "--format", "csv", "--out", tmp_path / "o"
    )
    assert done.code == 0
    tables = {str(file.relative_to(tmp_path / "o")) for file in (tmp_path / "o").rglob("*.csv")}
    assert tables == {"digits/tables/digits.csv", "pacs/tables/pacs.csv", "tables/ranking.csv"}
    assert "Nemenyi's critical difference" in done.out
