"""A run of five methods for the tests of the page, and ways to look into a page."""

from pathlib import Path
from typing import Any

from bench.records.reader import load_run
from reports.page import write_page
from reports.report import Report
from tests.kit.rounds import rounds, write_partition, write_rounds
from tests.kit.run_folders import Planned, write_run

LEVELS = {"local": 0.3, "fedavg": 0.6, "fedprox": 0.5, "fedlsa": 0.8, "central": 0.9}
DOMAINS = ("mnist", "fonts")


def write_five_methods(folder: Path) -> Path:
    """Five methods with three seeds each; the same settings as the paper has for this suite."""
    cells = [
        Planned(method, seed, (level + seed / 100, level - 0.2 + seed / 100), rounds=10)
        for method, level in LEVELS.items()
        for seed in range(3)
    ]
    path = write_run(folder, cells)
    for cell in cells:
        assert cell.test is not None
        each = 0 if cell.method in ("local", "central") else 500_000
        lines = rounds(dict(zip(DOMAINS, cell.test, strict=True)), each=each, metrics={"loss": 1.5})
        write_rounds(path, cell, lines)
    write_partition(path, {"mnist 0": [10, 40, 0], "fonts 1": [20, 0, 5]})
    return path


def page_of(run: Path, folder: Path | None = None) -> Path:
    report = Report(load_run(run))
    return write_page(report.run, report.tables, folder or run)


def labels(page: Any) -> list[str]:
    return list(page.locator("#overview tbody th button").all_inner_texts())


def lines_drawn(page: Any) -> list[str]:
    found = page.locator("#curves-chart path.line").evaluate_all("all => all.map(one => one.dataset.name)")
    return sorted(found)
