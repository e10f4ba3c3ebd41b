"""The start page: overall ranks, then suites, methods and papers."""

import statistics
from html import escape

from reports.published.printed import Paper
from reports.site.facts import Facts, file_name, standings_of
from reports.site.shell import document, framed, picture, section
from reports.tables.columns import NOT_AHEAD
from reports.tables.table import Table, number

LEAD = (
    "Every number here was computed by this harness, from results in the repository that anybody can verify: "
    "<code>bench verify results/SUITE.jsonl</code>."
)


def index_page(facts: Facts, papers: list[Paper], ranking_picture: str | None) -> str:
    parts = [_ranking(facts, ranking_picture)]
    # those with results first
    methods = sorted(facts.standings, key=lambda name: (not facts.standings[name], facts.label(name).lower()))
    suite_cards = [_suite_card(facts, name) for name in facts.reports]
    method_cards = [_method_card(facts, name) for name in methods]
    parts.append(section("Suites", _cards(suite_cards), name="suites"))
    parts.append(section("Methods", _cards(method_cards), name="methods"))
    if papers:
        parts.append(section("Papers", _cards([_paper_card(paper) for paper in papers]), name="papers"))
    return document("Results", "".join(parts), 0, f'<p class="lead">{LEAD}</p>')


def _ranking(facts: Facts, drawn: str | None) -> str:
    table = facts.ranking.table
    if table is None:
        return section(
            "Overall ranks",
            "<p>A ranking needs three methods with results on two datasets or more; the suites below have "
            "theirs.</p>\n",
            name="ranking",
        )
    figure = picture(drawn, "Average ranks and the critical difference") if drawn else ""
    return section("Overall ranks", figure, framed(table, 0), name="ranking")


def _cards(cards: list[str]) -> str:
    return f'<ul class="cards">\n{"".join(cards)}</ul>\n<p class="none" hidden>Nothing of that name.</p>\n'


def _card(page: str, title: str, words: str, also: str = "") -> str:
    searched = escape(f"{title} {words} {also}".lower(), quote=True)
    return (
        f'<li data-search="{searched}"><a href="{page}"><b>{escape(title)}</b>'
        f"<span>{escape(words)}</span></a></li>\n"
    )


def _suite_card(facts: Facts, name: str) -> str:
    run = facts.reports[name].run
    rows = [each for variant in run.variants for each in standings_of(run, variant)]
    first = next((each for each in rows if each.place == 1), None)
    best = ""
    if first:
        caution = (
            "" if _is_ahead(facts.reports[name].tables[0], first.row.label) else ", not shown to be ahead"
        )
        best = f"; highest AVG: {first.row.label}, {number(statistics.fmean(first.averages))}{caution}"
    methods = " ".join({each.row.label: None for each in rows})
    return _card(f"suites/{file_name(name)}", name, f"{run.suite.title}{best}", methods)


def _is_ahead(table: Table, label: str) -> bool:
    """Whether the table shows the row to be ahead of the runner-up, on AVG if it has such a column."""
    row = next((row for row in table.rows if row.label == label), None)
    if row is None:
        return False
    on_average = [entry for entry, name in zip(row.entries, table.columns, strict=True) if name == "AVG"]
    return not any(NOT_AHEAD in entry.signs for entry in on_average or row.entries)


def _method_card(facts: Facts, name: str) -> str:
    suites = {each.run.suite.name for each in facts.standings[name]}
    info = facts.methods.get(name)
    words = info.summary if info else ""
    where = f"{len(suites)} suite{'s' if len(suites) != 1 else ''}" if suites else "no results yet"
    return _card(f"methods/{file_name(name)}", facts.label(name), f"{words} ({where})".strip(), name)


def _paper_card(paper: Paper) -> str:
    return _card(f"papers/{file_name(paper.name)}", paper.name, paper.about, " ".join(paper.suites))
