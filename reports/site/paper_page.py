"""The page of a paper: what it prints against what was measured here."""

from collections.abc import Iterator
from html import escape

from reports.numbers.scores import rows_of
from reports.page.papers import paper_content
from reports.published.printed import Paper, printed_numbers
from reports.site.facts import Facts
from reports.site.shell import document, grid, link, section
from reports.tables.table import MISSING, number, signed_number


def paper_page(facts: Facts, paper: Paper) -> str:
    parts = []
    missing = []
    for suite in paper.suites:
        rows = list(_pairs(facts, paper, suite)) if suite in facts.reports else []
        if rows:
            headings = ("Method", "Column", "Printed", "Measured", "Seeds", "Difference")
            title = f"<p>{link('suites', suite, 'All results of this suite', 1)}</p>\n"
            parts.append(section(suite, title, grid(headings, rows, texts=2)))
        else:
            missing.append(suite)
    if missing:
        known = ", ".join(escape(suite) for suite in missing)
        parts.append(section("Not measured yet", f"<p>The paper also prints numbers for {known}.</p>\n"))
    trust = f"Source of the numbers: {escape(paper.trust)}."
    lead = f'<p class="lead">{escape(paper.about)}</p><p class="lead">{trust}</p>'
    return document(paper.name, "".join(parts), 1, lead)


def _pairs(facts: Facts, paper: Paper, suite: str) -> Iterator[tuple[str, ...]]:
    run = facts.reports[suite].run
    keys = list(dict.fromkeys((cell.method, cell.label) for cell in run.cells))
    variants = {variant: place for place, variant in enumerate(run.variants)}
    content = paper_content(run, {key: place for place, key in enumerate(keys)}, variants)
    of_this_paper = {
        (row.key, variant)
        for variant in run.variants
        for row in rows_of(run, variant)
        if (known := printed_numbers(suite, row.method, row.hyperparameters)) and known.paper == paper.name
    }
    for pair in content["pairs"] if content else ():
        key, variant = keys[pair["line"]], run.variants[pair["variant"]]
        if (key, variant) not in of_this_paper:
            continue
        ours, printed = pair["ours"], pair["printed"]
        spread = f' <span class="spread">± {number(pair["std"])}</span>' if pair["std"] is not None else ""
        yield (
            link("methods", key[0], key[1], 1),
            escape(" ".join(filter(None, (variant, pair["column"])))),
            number(printed),
            MISSING if ours is None else number(ours) + spread,
            str(pair["n"]),
            MISSING if ours is None else signed_number(ours - printed),
        )
