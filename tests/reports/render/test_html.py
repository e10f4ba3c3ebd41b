"""A table as a piece of HTML."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from reports.render import to_html
from reports.tables.table import Entry, Row, Table
from tests.kit.rendering import GROUPED, NASTY, numbers


class Outline(HTMLParser):
    """The tree as `(tag, attributes, text)`, in order; fails on a tag that is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.found.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        tag, attributes, text = self.found[-1]
        self.found[-1] = tag, attributes, text + data.strip()

    def of(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, text) for name, attributes, text in self.found if name == tag]


def test_html_has_the_structure_of_the_table(table: Table) -> None:
    outline = Outline(to_html(table))
    assert outline.of("section")[0][0] == {"data-suite": "quickstart", "data-table": "accuracy"}
    assert outline.of("caption")[0][1] == table.caption
    heads = [(attributes["scope"], text) for attributes, text in outline.of("th")]
    assert heads[:6] == [("col", name) for name in ("Method", *table.columns)]
    assert ("row", "FedLSA") in heads and ("row", NASTY) in heads
    assert len(outline.of("tbody")) == 3
    assert [text for _, text in outline.of("i")] == ["Local", "Central"]
    assert len(outline.of("li")) == len(table.footnotes)
    assert not outline.of("script") and not outline.of("style")


def test_html_cells_carry_their_numbers_for_sorting_and_in_words(table: Table) -> None:
    cells = [attributes for attributes, _ in Outline(to_html(table)).of("td")]
    shown = [entry for row in table.rows for entry in row.entries]
    assert len(cells) == len(shown)
    names = ("data-value", "data-std", "data-n", "data-low", "data-high", "data-p", "data-p-best")
    for attributes, cell in zip(cells, shown, strict=True):
        for name, value in zip(names, numbers(cell), strict=True):
            if name != "data-std":
                text = attributes.get(name)
                assert (float(text) if text else 0) == pytest.approx(value or 0)
    best = next(attributes for attributes, cell in zip(cells, shown, strict=True) if cell.p is not None)
    assert best["title"] == "5 seeds; 95 % interval 72.26 to 74.74; p <0.001 against FedAvg"


def test_html_marks_best_and_second_and_escapes_everything() -> None:
    text = to_html(GROUPED)
    heads = Outline(text).of("th")
    assert ({"scope": "colgroup", "colspan": "3"}, "AVG") in heads
    assert ({"scope": "col", "rowspan": "2"}, "L_COM") in heads
    assert ({"scope": "col"}, "<b>") in heads
    assert 'title="p &lt;0.001 against the method &amp; nothing else"' in text
    assert "<b>" not in text
    row = Row(
        "x", "X", (Entry("1", mark="best"), Entry("2", mark="second"), Entry("3"), Entry("4", signs=("≈",)))
    )
    marked = to_html(replace(GROUPED, sections=((row,),)))
    assert "<td><b>1</b></td><td><u>2</u></td><td>3</td><td>4<sup>≈</sup></td>" in marked
