"""Writes the site: the start page, and folders of suites, methods, papers and assets."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.errors import UserError
from bench.records.files import write_atomically
from bench.records.reader import Run
from reports.figures import ranking_pictures
from reports.numbers.ranking import comparable, rank_runs
from reports.page import write_page
from reports.published.printed import papers
from reports.report import Report
from reports.site.facts import Facts, MethodInfo, file_name
from reports.site.index_page import index_page
from reports.site.method_page import method_page
from reports.site.paper_page import paper_page
from reports.site.shell import asset, style
from reports.site.suite_page import suite_page

INDEX = "index.html"


def write_site(runs: Sequence[Run], methods: Mapping[str, MethodInfo], target: Path) -> Path:
    """Write the site of these runs, one per suite; returns the start page."""
    if not runs:
        raise UserError("there are no results to show; write some with `bench submit RUN`")
    facts = Facts(runs, methods)
    for report in facts.reports.values():
        report.check()
    printed = [paper for paper in papers() if any(suite in facts.reports for suite in paper.suites)]
    for name, report in facts.reports.items():
        _write_suite(report, target / "suites", name)
    for name in facts.standings:
        write_atomically(target / "methods" / file_name(name), method_page(facts, name))
    for paper in printed:
        write_atomically(target / "papers" / file_name(paper.name), paper_page(facts, paper))
    write_atomically(target / "assets" / "site.css", style())
    entries = json.dumps(list(_entries(facts, [paper.name for paper in printed])), ensure_ascii=False)
    write_atomically(target / "assets" / "site.js", f"const ENTRIES = {entries};\n{asset('site.js')}")
    write_atomically(target / INDEX, index_page(facts, printed, _ranking_picture(runs, target)))
    return target / INDEX


def _write_suite(report: Report, folder: Path, name: str) -> None:
    own = folder / name
    drawn = [picture.write(own / "figures")[0] for picture in report.pictures]
    write_page(report.run, report.tables, own)
    page = suite_page(report, [file.relative_to(folder).as_posix() for file in drawn])
    write_atomically(folder / file_name(name), page)


def _ranking_picture(runs: Sequence[Run], target: Path) -> str | None:
    """The critical-difference diagram over the suites, where there are enough of them."""
    files = [
        picture.write(target / "figures")[0] for picture in ranking_pictures(rank_runs(comparable(runs)))
    ]
    return files[0].relative_to(target).as_posix() if files else None


def _entries(facts: Facts, printed: Sequence[str]) -> Iterator[list[str]]:
    """What can be searched for: kind, title, page, and the words that find it."""
    for name, report in facts.reports.items():
        yield ["suite", name, f"suites/{file_name(name)}", report.run.suite.title]
    for name in sorted(facts.standings):
        info = facts.methods.get(name)
        words = f"{name} {info.summary if info else ''}"
        yield ["method", facts.label(name), f"methods/{file_name(name)}", words]
    for name in printed:
        yield ["paper", name, f"papers/{file_name(name)}", ""]
