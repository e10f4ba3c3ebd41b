"""The frame of every page, and pieces of HTML that several pages use."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template

from reports.render import to_html
from reports.site.facts import file_name
from reports.tables.table import Table

SITE = "Federated learning benchmark"


def document(title: str, body: str, depth: int, lead: str = "") -> str:
    """A page `depth` folders below the start page."""
    return Template(asset("page.html")).substitute(
        title=escape(title), site=SITE, lead=lead, body=body, root="../" * depth
    )


def asset(name: str) -> str:
    return files("reports").joinpath("site", "assets", name).read_text(encoding="utf-8")


def style() -> str:
    """That of the page of a run, and what the site has beside it."""
    of_page = files("reports").joinpath("page", "assets", "style.css").read_text(encoding="utf-8")
    return of_page + asset("site.css")


def link(kind: str, name: str, text: str, depth: int) -> str:
    """A link to the page of a suite, a method or a paper."""
    return f'<a href="{"../" * depth}{kind}/{file_name(name)}">{escape(text)}</a>'


def section(title: str, *parts: str, name: str = "") -> str:
    anchor = f' id="{name}"' if name else ""
    return f"<section{anchor}>\n<h2>{escape(title)}</h2>\n{''.join(parts)}</section>\n"


def framed(table: Table, depth: int) -> str:
    """A table that scrolls by itself, with its caption above and methods that lead to their pages."""
    text = to_html(table)
    caption = re.search(r"<caption>(.*?)</caption>\n", text, re.DOTALL)
    words = caption.group(1) if caption else ""
    text = text.replace(caption.group(0) if caption else "", "")
    text = re.sub(
        r'<tr data-method="([^"]+)"><th scope="row">(.*?)(<sup>.*?</sup>)?</th>',
        lambda row: (
            f'<tr data-method="{row[1]}"><th scope="row">'
            f'<a href="{"../" * depth}methods/{file_name(row[1])}">{row[2]}</a>{row[3] or ""}</th>'
        ),
        text,
    )
    text = text.replace(
        "<table>", f'<div class="scroll" tabindex="0"><table class="results" aria-label="{words}">'
    )
    text = text.replace("</table>", "</table></div>").replace("<section", '<div class="table"')
    return f'{text.replace("</section>", "</div>")}<p class="caption">{words}</p>\n'


def grid(headings: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """A plain table of ready HTML; the first `texts` columns are words, the others numbers."""
    kinds = ["text" if place < texts else "" for place in range(len(headings))]
    head = "".join(
        f'<th scope="col" class="{kind}">{escape(heading)}</th>'
        for heading, kind in zip(headings, kinds, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td class="{kind}">{cell}</td>' for cell, kind in zip(row, kinds, strict=True))
        + "</tr>\n"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0"><table class="results">\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table></div>\n"
    )


def command(text: str) -> str:
    return f'<p class="command"><code>{escape(text)}</code></p>\n'


def picture(source: str, description: str) -> str:
    return f'<figure><img src="{escape(source)}" alt="{escape(description)}" loading="lazy"></figure>\n'
