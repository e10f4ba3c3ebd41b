"""Combines template, style, scripts and content into one HTML file."""

import base64
import gzip
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

from reports.render import to_html
from reports.tables.table import Table

SCRIPTS = (  # in order of dependency
    "content",
    "dom",
    "format",
    "statistics",
    "tooltip",
    "theme",
    "scales",
    "line_chart",
    "heat_map",
    "dot_charts",
    "sorting",
    "overview",
    "curves",
    "sensitivity",
    "sweep",
    "groups",
    "partition",
    "papers",
    "cell_view",
    "cells",
    "start",
)


def document(title: str, content: Mapping[str, Any]) -> str:
    """The HTML file; the content is compressed, because the histories of cells are similar."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    packed = gzip.compress(text.encode(), compresslevel=6, mtime=0)
    script = "\n".join(_asset("js", f"{name}.js") for name in SCRIPTS)
    return Template(_asset("page.html")).substitute(
        title=html.escape(title),
        style=_asset("style.css"),
        content=base64.b64encode(packed).decode(),
        script=f'"use strict";\n(() => {{\n{script}}})();',
    )


def tables_document(tables: Sequence[Table]) -> str:
    """An HTML file with only these tables, in the style of the page."""
    return Template(_asset("tables.html")).substitute(
        title=html.escape(tables[0].caption.partition(":")[0]),
        style=_asset("style.css"),
        tables="".join(map(to_html, tables)),
    )


def ranking_document(ranking: Table) -> str:
    """An HTML file with only the ranking."""
    # n counts settings here, and the tooltip would call them seeds
    rows = tuple(
        replace(row, entries=tuple(replace(entry, n=0) for entry in row.entries)) for row in ranking.rows
    )
    return tables_document([replace(ranking, sections=(rows,))])


@cache
def _asset(*names: str) -> str:
    return files("reports").joinpath("page", "assets", *names).read_text(encoding="utf-8")
