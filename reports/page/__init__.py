"""The page: everything about a run in one file that needs no network; and the ranking over runs."""

from pathlib import Path

from bench.records.beside import Beside
from bench.records.files import replacing
from bench.records.reader import Run
from reports.page.content import page_content
from reports.page.document import document, ranking_document
from reports.tables.kinds import tables_of
from reports.tables.table import Table

__all__ = ["write_page", "write_ranking_page"]

FILE_NAME = "report.html"
RANKING_NAME = "ranking.html"


def write_page(run: Run, folder: Path, beside: Beside | None = None) -> Path:
    """Write the page of a run, or of several that have been merged into one."""
    content = page_content(run, tables_of(run), beside or Beside())
    return _written(folder / FILE_NAME, document(run.suite.title or run.suite.name, content))


def write_ranking_page(ranking: Table, folder: Path) -> Path:
    """Write the table of ranks over several runs, which belongs to none of their pages."""
    return _written(folder / RANKING_NAME, ranking_document(ranking))


def _written(path: Path, text: str) -> Path:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    return path
