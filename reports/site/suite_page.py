"""The page of a suite: tables, figures, where the numbers come from, and how to check them."""

from collections import Counter
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from bench.records.reader import CellRecord, Run
from bench.suite.loading import as_option
from reports.report import Report
from reports.site.shell import command, document, framed, picture, section


def suite_page(report: Report, pictures: Sequence[str]) -> str:
    """`pictures` are the figures' files, relative to the page."""
    run = report.run
    accuracy = [table for table in report.tables if table.name == "accuracy"]
    statistics = [table for table in report.tables if table.name != "accuracy"]
    parts = [
        section("Results", *(framed(table, 1) for table in accuracy), name="results"),
        section("Statistics", *(framed(table, 1) for table in statistics), name="statistics"),
    ]
    if pictures:
        drawn = [picture(file, f"{_words(file)} of {run.suite.name}") for file in pictures]
        parts.append(section("Figures", f'<div class="multiples">{"".join(drawn)}</div>\n', name="figures"))
    parts += [_again(run), _provenance(run)]
    return document(run.suite.title or run.suite.name, "".join(parts), 1, _lead(run))


def _words(file: str) -> str:
    return file.rpartition("/")[2].removesuffix(".png").replace("_", " ")


def _lead(run: Run) -> str:
    methods = len({(cell.method, cell.label) for cell in run.cells})
    seeds = len({cell.seed for cell in run.cells})
    name = escape(run.suite.name)
    return (
        f'<p class="meta"><span>suite <b>{name}</b>, version {run.suite.version}</span>'
        f"<span><b>{methods}</b> rows</span><span><b>{seeds}</b> seeds</span>"
        f"<span><b>{len(run.cells)}</b> cells</span>"
        f'<span><a href="{name}/report.html">every cell, curve and configuration</a></span></p>'
    )


def _again(run: Run) -> str:
    suite, seeds = as_option(run.suite.name), max(cell.seed for cell in run.cells) + 1
    tuned = next((cell.tuning.get("trials") for cell in run.cells if cell.tuning), None)
    trials = tuned if isinstance(tuned, int) else None  # people copy this command into a shell
    whole = (
        f"bench study --suite {suite} --trials {trials} --seeds {seeds}"
        if trials
        else f"bench run --suite {suite} --seeds {seeds}"
    )
    return section(
        "Compute it again",
        "<p>Check the recorded lines and compute three randomly chosen cells again; on the same kind of CPU "
        "they agree bit for bit:</p>\n",
        command(f"bench verify results/{run.suite.name}.jsonl --cells 3"),
        "<p>Everything from the start, in a folder of its own:</p>\n",
        command(f"{whole} --out rerun"),
        name="again",
    )


def _provenance(run: Run) -> str:
    facts: dict[str, Callable[[CellRecord], Any]] = {
        "Commit": lambda cell: cell.provenance.commit,
        "Processor": lambda cell: cell.provenance.hardware.get("cpu"),
        "Device": lambda cell: cell.provenance.hardware.get("device"),
        "Executor": lambda cell: cell.provenance.executor,
        "Versions": lambda cell: ", ".join(f"{k} {v}" for k, v in cell.provenance.versions.items()),
        "Data checksum": lambda cell: (cell.provenance.data_checksum or "")[:16],
        "Notes on the data": lambda cell: "; ".join(cell.provenance.data_notes),
        "Changed of the suite": lambda cell: ", ".join(f"{k} = {v}" for k, v in cell.settings.items()),
    }
    items = []
    for name, get in facts.items():
        values = Counter(str(value) for cell in run.cells if (value := get(cell)))
        shown = [value if len(values) == 1 else f"{value} ({count} cells)" for value, count in values.items()]
        if shown:
            items.append(f"<dt>{escape(name)}</dt><dd>{'<br>'.join(map(escape, shown))}</dd>\n")
    return section("Where the numbers come from", f"<dl>\n{''.join(items)}</dl>\n", name="provenance")
