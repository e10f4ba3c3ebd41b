"""What must not change by accident: cell ids, tables to the byte, and the records of one cell.

After an intended change, `python -m tests.test_golden` writes the files again; the diff shows what changed.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.records.cell_folder import CellFolder
from bench.records.reader import load_run
from bench.suite.loading import load_suite, suite_names
from bench.suite.planning import plan_cells
from reports.combine.merge import merge_runs
from reports.render.files import write_tables
from reports.render.html import to_html
from reports.tables.kinds import tables_of
from reports.tables.rank_table import ranking_table
from tests.kit.run_folders import Planned, golden_run, write_run
from tests.kit.tables import FEDAVG, FEDLSA, FEDPROX, seeds

GOLDEN = Path(__file__).with_name("golden")
SWITCHES = {"compactness": "L_COM", "separation": "L_SEP"}
WITHOUT_TIMING = ("seconds",)


def cell_ids(suite: str) -> str:
    """A line per cell: its folder, its row and its variant."""
    cells = plan_cells(load_suite(suite))
    return "".join(f"{cell.directory}  {cell.label}  {cell.variant}".rstrip() + "\n" for cell in cells)


def variants_run(path: Path) -> Path:
    cells = [
        *seeds("fedavg", FEDAVG, variant="β=0.5"),
        *seeds("fedlsa", FEDLSA, variant="β=0.5", personal=0.95),
        *seeds("fedavg", FEDPROX, variant="β=0.1"),
        *seeds("fedlsa", FEDAVG[:2], variant="β=0.1"),
    ]
    return write_run(path, cells, kind="variants", suite="cifar100_label_skew")


def ablation_run(path: Path) -> Path:
    cells = seeds("fedavg", FEDAVG, variant="digits")
    for com, sep in [(False, False), (True, False), (False, True), (True, True)]:
        switches = {"compactness": com, "separation": sep}
        label = f"{com:d}{sep:d}"
        cells += seeds("fedlsa", FEDLSA, label=label, variant="digits", hyperparameters=switches)
    table = {"kind": "ablation", "switches": SWITCHES}
    return write_run(path, cells, suite="fedlsa_ablation", table=table)


def wrapped_run(path: Path) -> Path:
    cells = [
        *seeds("fedavg", FEDAVG),
        *seeds("ggeur+fedavg", FEDLSA, label="GGEUR+FedAvg"),
        *seeds("fedprox", FEDPROX),
        *seeds("ggeur+fedprox", FEDAVG[:2], label="GGEUR+FedProx"),
        *seeds("central", FEDLSA),
    ]
    return write_run(path, cells, table={"kind": "wrapped", "wrapper": "ggeur"})


RUNS = {"quickstart": golden_run, "variants": variants_run, "ablation": ablation_run, "wrapped": wrapped_run}


def files_of_tables(name: str, scratch: Path) -> dict[str, str]:
    tables = tables_of(load_run(RUNS[name](scratch / "run")))
    files = write_tables(tables, name, ("md", "latex", "csv"), scratch / "tables")
    made = {file.name: file.read_text(encoding="utf-8") for file in files}
    return {**made, f"{name}.html": "".join(map(to_html, tables))}


def ranking_files(scratch: Path) -> dict[str, str]:
    def run(name: str, lead: float) -> Path:
        cells: list[Planned] = []
        for method, level in (("fedavg", 0.6), ("fedprox", 0.62), ("fedlsa", 0.6 + lead)):
            cells += seeds(method, [(level, level - 0.1), (level + 0.02, level - 0.12)], dataset=name)
        return write_run(scratch / name, cells, suite=name)

    runs = merge_runs([load_run(run("one", 0.1)), load_run(run("two", -0.1)), load_run(run("three", 0.05))])
    table = ranking_table(runs)
    assert table is not None
    (file,) = write_tables([table], "ranking", ("md",), scratch / "tables")
    return {file.name: file.read_text(encoding="utf-8")}


def cell_records(scratch: Path) -> dict[str, str]:
    """A small cell that trains in a second: its configuration and its rounds without the timing."""
    suite = load_suite(str(GOLDEN / "cell" / "suite.yaml"))
    cell = plan_cells(suite)[0]
    run = CellRun(CellFolder(scratch / "cell"), cell.config, Conditions(executor="loop"))
    while not run.done:
        run.advance()
    lines = (scratch / "cell" / "rounds.jsonl").read_text(encoding="utf-8").splitlines()
    kept = [
        {key: value for key, value in json.loads(line).items() if key not in WITHOUT_TIMING} for line in lines
    ]
    return {
        "config.json": (scratch / "cell" / "config.json").read_text(encoding="utf-8"),
        "rounds.jsonl": "".join(json.dumps(line) + "\n" for line in kept),
    }


def read(folder: str, names: Sequence[str]) -> dict[str, str]:
    return {name: (GOLDEN / folder / name).read_text(encoding="utf-8") for name in names}


@pytest.mark.parametrize("suite", suite_names())
def test_the_cells_of_every_shipped_suite_keep_their_ids(suite: str) -> None:
    expected = read("cells", [f"{suite}.txt"])[f"{suite}.txt"]
    assert cell_ids(suite) == expected


@pytest.mark.parametrize("name", RUNS)
def test_a_table_of_every_kind_is_the_golden_one_to_the_byte(name: str, tmp_path: Path) -> None:
    made = files_of_tables(name, tmp_path)
    assert made == read("tables", list(made))


def test_the_ranking_over_suites_is_the_golden_one_to_the_byte(tmp_path: Path) -> None:
    made = ranking_files(tmp_path)
    assert made == read("tables", list(made))


def test_a_cell_leaves_the_golden_records(tmp_path: Path) -> None:
    """Accuracies may differ by a few of the 120 test images per domain where another CPU rounds otherwise."""
    made = cell_records(tmp_path)
    expected = read("cell", list(made))
    assert made["config.json"] == expected["config.json"]
    rounds, golden = (
        [json.loads(line) for line in each["rounds.jsonl"].splitlines()] for each in (made, expected)
    )
    assert [list(line) for line in rounds] == [list(line) for line in golden]
    for line, like in zip(rounds, golden, strict=True):
        assert line.pop("test") == pytest.approx(like.pop("test"), abs=0.1)
        assert line == like


def test_a_run_folder_of_version_0_1_gives_the_table_it_gave_then(tmp_path: Path) -> None:
    tables = tables_of(load_run(GOLDEN / "run_of_version_0.1"))
    (file,) = write_tables(tables, "quickstart", ("csv",), tmp_path)
    expected = GOLDEN / "run_of_version_0.1" / "expected" / "quickstart.csv"
    assert file.read_text(encoding="utf-8") == expected.read_text(encoding="utf-8")


def write_again() -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        files = {f"cells/{suite}.txt": cell_ids(suite) for suite in suite_names()}
        for name in RUNS:
            made = files_of_tables(name, Path(scratch) / name)
            files |= {f"tables/{file}": text for file, text in made.items()}
        files |= {f"tables/{file}": text for file, text in ranking_files(Path(scratch)).items()}
        files |= {f"cell/{file}": text for file, text in cell_records(Path(scratch)).items()}
    for name, text in files.items():
        (GOLDEN / name).parent.mkdir(parents=True, exist_ok=True)
        (GOLDEN / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_again()
