"""The table of domains that were left out in turn, against numbers computed by hand."""

import json
from pathlib import Path

from bench.records.reader import Run, load_run
from reports.tables.kinds import tables_of
from tests.kit.run_folders import Planned, write_run
from tests.kit.tables import notes, row, seeds, texts

MNIST = {"fedavg": [0.50, 0.60], "fedlsa": [0.70, 0.80]}
FONTS = {"fedavg": [0.30, 0.20], "fedlsa": [0.20, 0.30]}


def run_of(path: Path, cells: list[Planned]) -> Run:
    """Each cell has the accuracy on the domain that its variant leaves out, and on no other."""
    write_run(path, cells, kind="unseen", domains=("mnist", "fonts"))
    for cell in cells:
        file = path / cell.dir / "result.json"
        if cell.test is not None:
            result = json.loads(file.read_text())
            domain = cell.variant.removeprefix("without ")
            result["final"]["test"] = {domain: result["final"]["test"][domain]}
            file.write_text(json.dumps(result))
    return load_run(path)


def planned(method: str, **options: str) -> list[Planned]:
    return [
        *seeds(method, [(value, 0.99) for value in MNIST[method]], variant="without mnist", **options),
        *seeds(method, [(0.99, value) for value in FONTS[method]], variant="without fonts", **options),
    ]


def test_a_column_for_each_domain_and_the_average_over_them(tmp_path: Path) -> None:
    table, *_ = tables_of(run_of(tmp_path, planned("fedavg") + planned("fedlsa")))
    assert table.columns == ("mnist", "fonts", "AVG", "Δ")
    assert texts(table, "FedAvg") == ["55.00 ± 7.07", "25.00 ± 7.07", "40.00 ± 0.00", "0.00"]
    assert texts(table, "FedLSA") == ["75.00 ± 7.07", "25.00 ± 7.07", "50.00 ± 7.07", "+10.00"]
    assert [entry.mark for entry in row(table, "FedLSA").entries][:3] == ["best", "best", "best"]
    assert any("a domain that no client has" in note for note in notes(table))


def test_a_seed_counts_for_the_average_once_all_its_domains_are_there(tmp_path: Path) -> None:
    cells = planned("fedavg")
    cells[-1] = Planned("fedavg", 1, variant="without fonts")
    table, *_ = tables_of(run_of(tmp_path, cells))
    assert texts(table, "FedAvg")[:3] == ["55.00 ± 7.07", "30.00", "40.00"]
    signs = [entry.signs for entry in row(table, "FedAvg").entries]
    assert signs[:3] == [(), ("1/2",), ("1/2",)]
    assert any("FedAvg without fonts seed 1" in note for note in notes(table))
