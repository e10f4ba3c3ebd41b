"""The page: everything about a run in one file that needs no network."""

from pathlib import Path

from reports.beside import Beside, find_beside
from reports.files import replacing
from reports.page.content import page_content
from reports.page.document import document
from reports.records import Run, load_run
from reports.tables import tables_of

__all__ = ["build_page", "write_page"]

FILE_NAME = "report.html"


def build_page(run: Run, beside: Beside) -> str:
    """The whole HTML file."""
    return document(run.suite.title or run.suite.name, page_content(run, tables_of(run), beside))


def write_page(run_directory: Path, out: Path | None = None) -> Path:
    """Write the page of a run into `out` or its own directory."""
    path = (out or run_directory) / FILE_NAME
    page = build_page(load_run(run_directory), find_beside(run_directory))
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8", newline="\n")
    return path
