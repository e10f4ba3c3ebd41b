"""Runs that follow a paper's code to the letter."""

import json
from dataclasses import replace
from pathlib import Path

from bench.records.reader import load_run
from bench.records.schema import Oracle, RoundRecord
from reports.tables.kinds import domain_table, variant_table
from reports.tables.selection import selection_table
from reports.tables.summary import summary_table
from tests.kit.run_folders import Planned, write_run
from tests.kit.tables import FEDAVG, FEDLSA, FEDPROX, entry, make, notes, row, seeds, texts


def test_a_run_as_published_shows_its_best_round_and_another_its_last(tmp_path: Path) -> None:
    published = Planned("ggeur", 0, FEDLSA[0], hyperparameters={"as_published": True})
    run = load_run(write_run(tmp_path, [Planned("fedavg", 0, FEDAVG[0]), published]))
    for record in run.cells:
        best = dict.fromkeys(run.domains, 0.99)
        assert record.result is not None and record.result.final.test is not None
        last = record.result.final.test
        rounds = [RoundRecord(round=1, test=best), RoundRecord(round=2, test=last)]
        told = record.result.model_copy(update={"oracle": Oracle(round=1, avg=0.99)})
        shown = [replace(record, rounds=rounds, result=told).accuracy(domain) for domain in run.domains]
        expected = best if record.as_published else last
        assert shown == [expected[domain] for domain in run.domains]


def test_a_run_as_published_that_lost_its_best_round_has_no_number(tmp_path: Path) -> None:
    published = Planned("ggeur", 0, FEDLSA[0], hyperparameters={"as_published": True})
    result = write_run(tmp_path, [Planned("fedavg", 0, FEDAVG[0]), published]) / published.dir / "result.json"
    result.write_text(json.dumps({**json.loads(result.read_text()), "oracle": None}))
    table = domain_table(load_run(tmp_path))
    assert set(texts(table, "ggeur")) == {"–"}
    assert "Not finite, treated as missing: ggeur seed 0 on mnist, fonts." in notes(table)
    table = selection_table(load_run(tmp_path), "")
    assert entry(table, "ggeur", "Oracle (do not compare)").missing
    assert entry(table, "ggeur", "Final").text == "70.00"


def test_a_run_as_published_is_marked_and_not_ranked(tmp_path: Path) -> None:
    cells = [
        *seeds("fedavg", FEDAVG),
        *seeds("fedprox", FEDPROX),
        *seeds("ggeur", FEDLSA, hyperparameters={"as_published": True}),
    ]
    table = make(tmp_path, cells)
    assert row(table, "ggeur").signs == ("†",)
    assert entry(table, "ggeur", "AVG").mark == ""
    assert entry(table, "FedProx", "AVG").mark == "best"
    statistics = summary_table(load_run(tmp_path), "")
    assert [row.signs for row in statistics.rows] == [(), (), ("†",)]
    for each in (table, statistics):
        assert any(note.startswith("† run exactly as the paper's code") for note in notes(each))


def test_as_published_is_marked_if_only_a_later_variant_has_begun(tmp_path: Path) -> None:
    cells = [
        Planned("ggeur", 0, variant="β=0.5"),
        Planned("ggeur", 0, FEDLSA[0], variant="β=0.1", hyperparameters={"as_published": True}),
    ]
    table = variant_table(load_run(write_run(tmp_path, cells, kind="variants")))
    assert row(table, "ggeur").signs == ("†",)
