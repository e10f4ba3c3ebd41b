"""Tables of datasets with many domains stay readable."""

from pathlib import Path

from bench.records.reader import load_run
from reports.tables.kinds import tables_of
from reports.tables.wrapped import MANY_DOMAINS
from tests.kit.run_folders import write_run
from tests.kit.tables import make, seeds, texts

DOMAINS = [f"domain{number}" for number in range(MANY_DOMAINS + 1)]
PLAIN = [[0.50 + 0.01 * at for at in range(len(DOMAINS))]]
BETTER = [[value + 0.1 for value in PLAIN[0]]]


def test_figures_over_all_domains_come_before_many_domains(tmp_path: Path) -> None:
    cells = [*seeds("fedavg", PLAIN), *seeds("fedlsa", BETTER)]
    table = make(tmp_path / "many", cells, domains=DOMAINS)
    assert list(table.columns) == ["AVG", "STD", "Δ", *DOMAINS]
    assert texts(table, "FedAvg")[:4] == ["54.00", "2.58", "0.00", "50.00"]
    few = [seeds("fedavg", [PLAIN[0][:3]])[0]]
    assert list(make(tmp_path / "few", few, domains=DOMAINS[:3]).columns)[:4] == [*DOMAINS[:3], "AVG"]


def test_a_wrapped_table_of_many_domains_has_their_averages_and_a_table_of_domains(tmp_path: Path) -> None:
    cells = [*seeds("fedavg", PLAIN), *seeds("ggeur+fedavg", BETTER, label="GGEUR+FedAvg")]
    layout = {"kind": "wrapped", "wrapper": "ggeur"}
    path = write_run(tmp_path / "run", cells, domains=DOMAINS, table=layout)
    first, second, *_ = tables_of(load_run(path))
    assert texts(first, "FedAvg") == ["54.00", "64.00", "+10.00"]
    assert list(second.columns) == ["AVG", "STD", "Δ", *DOMAINS]
    assert [row.label for row in second.rows] == ["FedAvg", "GGEUR+FedAvg"]
