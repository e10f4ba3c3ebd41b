"""The page: everything about a run in one file that needs no network."""

from pathlib import Path

from reports.beside import Beside
from reports.files import replacing
from reports.page.content import page_content
from reports.page.document import document
from reports.records import Run
from reports.tables import tables_of

__all__ = ["write_page"]

FILE_NAME = "report.html"


def write_page(run: Run, folder: Path, beside: Beside | None = None) -> Path:
    """Write the page of a run, or of several that have been merged into one."""
    content = page_content(run, tables_of(run), beside or Beside())
    path = folder / FILE_NAME
    with replacing(path) as temporary:
        temporary.write_text(document(run.suite.title or run.suite.name, content), "utf-8", newline="\n")
    return path
