"""Random bytes of a finished run's records are damaged: the tables are the same, or a sentence says where."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from pydantic import BaseModel

from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.records.reader import load_run
from bench.runs.partition_record import partition_record
from bench.runs.plan import plan_of
from bench.runs.request import RunRequest
from reports.figures.projection import pictures
from reports.render.html import to_html
from reports.report import Report
from tests.kit.cli import write_suite
from tests.kit.damage import Outcomes, damage_one
from tests.kit.fault_report import FaultReport

pytestmark = pytest.mark.faults

TIMES = 150
SECTION = "Bytes damaged at random on the disk"


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    folder = tmp_path_factory.mktemp("damaged")
    suite = write_suite(folder, methods=["fedavg", "fedlsa"])
    return ["--suite", suite, "--out", folder / "runs"]


@pytest.fixture(scope="module")
def finished(command: list[object]) -> Path:
    """A run whose cells are done, made without Ray."""
    plan = plan_of(RunRequest(suite=str(command[1]), out=Path(str(command[3]))))
    plan.folder.path.mkdir(parents=True)
    plan.write()
    plan.folder.write_partition(partition_record(plan.cells[0].config, None))
    for cell in plan.cells:
        run = CellRun(plan.folder.cell(cell.directory), cell.config, Conditions(executor="loop"))
        while not run.done:
            run.advance()
    return plan.folder.path


def known(record: BaseModel) -> str:
    """What is under the keys that mean something; a checksum under a damaged key is nothing."""
    return str({name: getattr(record, name) for name in type(record).model_fields})


def contents(path: Path) -> list[str]:
    """All that reports are made of, and the tables."""
    run = load_run(path)
    assert run.partition is not None
    found = [*map(to_html, Report(run).tables), str(run.suite), known(run.partition)]
    for cell in run.cells:
        assert cell.predictions is not None and cell.config is not None and cell.result is not None
        found += [cell.name, known(cell.config), str(cell.rounds), known(cell.result)]
        found += [f"{domain} {counts.tolist()}" for domain, counts in cell.predictions.right.items()]
    return [*found, *(picture.name for picture in pictures(run))]


@pytest.mark.parametrize(
    "name",
    [
        "plan.json",
        "partition.json",
        "config.json",
        "rounds.jsonl",
        "result.json",
        "predictions.npz",
        "projection.npz",
    ],
)
def test_a_record(name: str, finished: Path, tmp_path: Path, report: FaultReport) -> None:
    draw, outcomes, expected = random.Random(name), Outcomes(), contents(finished)
    copy = tmp_path / finished.name
    for _ in range(TIMES):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(finished, copy)
        damaged = damage_one(sorted(copy.rglob(name)), draw)
        outcomes.judge(lambda: contents(copy), expected, damaged, damaged.parent)
    report.add(SECTION, f"`{name}` of a finished run", outcomes.total, str(outcomes))
