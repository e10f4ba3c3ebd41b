"""Puts template, style, scripts and content into one file."""

import base64
import gzip
import html
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

SCRIPTS = (  # in the order in which they build on each other
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
    "groups",
    "partition",
    "papers",
    "cell_view",
    "cells",
    "start",
)


def document(title: str, content: Mapping[str, Any]) -> str:
    """The HTML file; the content is packed, as a thousand histories are mostly alike."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    packed = gzip.compress(text.encode(), compresslevel=6, mtime=0)
    script = "\n".join(_asset("js", f"{name}.js") for name in SCRIPTS)
    return Template(_asset("page.html")).substitute(
        title=html.escape(title),
        style=_asset("style.css"),
        content=base64.b64encode(packed).decode(),
        script=f'"use strict";\n(() => {{\n{script}}})();',
    )


@cache
def _asset(*names: str) -> str:
    return files("reports").joinpath("page", "assets", *names).read_text(encoding="utf-8")
