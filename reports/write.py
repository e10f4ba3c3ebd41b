"""Writes the tables of a run to files."""

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.errors import UserError, nearest
from reports.files import replacing
from reports.records import load_run
from reports.render import to_csv, to_latex, to_markdown
from reports.table import Table
from reports.tables import tables_of


def _csv(tables: Sequence[Table]) -> str:
    return "".join(to_csv(table, header=index == 0) for index, table in enumerate(tables))


_FORMATS: dict[str, tuple[str, Callable[[Sequence[Table]], str]]] = {
    "md": (".md", lambda tables: "\n".join(map(to_markdown, tables))),
    "latex": (".tex", lambda tables: "\n".join(map(to_latex, tables))),
    "csv": (".csv", _csv),
}


def write_tables(run_dir: Path, formats: Sequence[str], out: Path | None = None) -> list[Path]:
    """Write the run's tables in each format, all of them in one file, into `out` or the run's `tables/`."""
    for name in formats:
        if name not in _FORMATS:
            raise UserError(f"Unknown table format '{name}': {nearest(name, _FORMATS)}")
    run = load_run(run_dir)
    tables = tables_of(run)
    written = []
    for name in formats:
        suffix, render = _FORMATS[name]
        path = (out or run_dir / "tables") / f"{run.suite.name}{suffix}"
        with replacing(path) as temporary:
            temporary.write_text(render(tables), encoding="utf-8", newline="\n")
        written.append(path)
    return written
