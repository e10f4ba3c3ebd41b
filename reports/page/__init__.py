"""The page of a run: one HTML file that needs no network; and pages for tables over several runs."""

from collections.abc import Sequence
from pathlib import Path

from bench.records.files import write_atomically
from bench.records.reader import Run
from reports.page.content import page_content
from reports.page.document import document, ranking_document, tables_document
from reports.tables.table import Table

__all__ = ["write_page", "write_ranking_page", "write_tables_page"]

FILE_NAME = "report.html"
RANKING_NAME = "ranking.html"


def write_page(run: Run, tables: Sequence[Table], folder: Path) -> Path:
    """Write the page of a run, or of several that have been merged into one, with these tables."""
    content = page_content(run, tables)
    return _written(folder / FILE_NAME, document(run.suite.title or run.suite.name, content))


def write_ranking_page(ranking: Table, folder: Path) -> Path:
    """Write the table of ranks over several runs as a page of its own."""
    return _written(folder / RANKING_NAME, ranking_document(ranking))


def write_tables_page(tables: Sequence[Table], name: str, folder: Path) -> Path:
    """Write tables over several runs as a page of their own."""
    return _written(folder / name, tables_document(tables))


def _written(path: Path, text: str) -> Path:
    write_atomically(path, text)
    return path
