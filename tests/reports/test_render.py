"""The same table as Markdown, LaTeX, CSV, HTML and in the terminal."""

import csv
import io
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from bench.records.reader import load_run
from kit.run_folders import Planned, golden_run, write_run
from reports.render import to_csv, to_html, to_latex, to_markdown, to_terminal
from reports.tables.kinds import domain_table, tables_of
from reports.tables.table import Cell, Footnote, Row, Table, number, probability, signed_number

NASTY = 'A_b & 50% #1 {x} ~^\\ $y$ [z] "q" <β|λ₁> 漢 ü *s*'


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Bounds, a best, a second, a partial, a failed and a missing cell; a label that needs escaping."""
    return domain_table(
        load_run(
            write_run(
                tmp_path / "run",
                [
                    *(Planned("local", seed, (0.5, 0.1)) for seed in range(3)),
                    *(Planned("fedavg", seed, (0.80 + seed / 50, 0.40)) for seed in range(3)),
                    *(Planned("fedlsa", seed, (0.90 + seed / 50, 0.55)) for seed in range(3)),
                    *(Planned("odd", seed, (0.7, 0.3), label=NASTY) for seed in range(2)),
                    Planned("odd", 2, label=NASTY, error=f"bad {NASTY}"),
                    *(Planned("fedprox", seed) for seed in range(3)),
                    *(Planned("central", seed, (0.95, 0.9)) for seed in range(3)),
                ],
                domains=("mnist", "art_painting"),
            )
        )
    )


def test_numbers_have_two_decimals_and_no_negative_zero() -> None:
    assert [number(value) for value in (61.666, -0.001, -3.0)] == ["61.67", "0.00", "−3.00"]
    assert [signed_number(value) for value in (1.5, 0.001, -0.001, -2.25)] == [
        "+1.50",
        "0.00",
        "0.00",
        "−2.25",
    ]


def test_markdown_has_a_line_a_method_and_the_marks(table: Table) -> None:
    text = to_markdown(table)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 6
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    assert {len(row) for row in cells} == {6}
    assert cells[0] == ["Method", "mnist", r"art\_painting", "AVG", "STD", "Δ"]
    by_label = {row[0]: row[1:] for row in cells[2:]}
    assert by_label["FedLSA"][0] == "**92.00 ± 2.00**"
    assert by_label["FedLSA"][2] == r"**73.50 ± 1.00**<sup>\*</sup>"
    assert r"- <sup>\*</sup> differs from FedAvg (paired t-test" in text
    assert by_label["FedAvg"][0] == "<ins>82.00 ± 2.00</ins>"
    assert by_label["FedProx"] == ["–"] * 5
    assert by_label["*Local*"][0] == "50.00 ± 0.00"
    assert by_label[cells[5][0]][0] == "70.00 ± 0.00<sup>2/3</sup>"
    assert "- <sup>2/3</sup> 2 of 3 seeds." in text
    assert r"<β" not in text.replace(r"\<β", "")


def latex_rows(text: str) -> list[str]:
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    return [line for line in body.splitlines() if line.endswith(r"\\")]


def test_latex_is_well_formed(table: Table, tmp_path: Path) -> None:
    for each in (table, GROUPED, *tables_of(load_run(golden_run(tmp_path / "golden")))):
        assert_well_formed(to_latex(each))


def assert_well_formed(text: str) -> None:
    assert re.findall(r"\\begin{([^}]*)}", text) == ["table*", "tabular", "minipage"]
    assert re.findall(r"\\end{([^}]*)}", text) == ["tabular", "minipage", "table*"]
    unescaped = re.sub(r"\\[\\{}&%$#_]", "", text.replace(r"\\" + "\n", "\n"))
    depth = 0
    for character in unescaped:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    assert unescaped.count("$") % 2 == 0
    outside_maths = re.sub(r"\$[^$]*\$", "", unescaped)
    assert not re.search("[%#~^_]", outside_maths)
    assert all(character.isascii() or character == "ü" for character in text)
    columns = len(re.findall("[lr]", re.findall(r"\\begin{tabular}{(.*)}", text)[0]))
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    for line in body.splitlines():
        if line.endswith(r"\\"):
            spans = sum(int(span) - 1 for span in re.findall(r"\\multicolumn{(\d+)}", line))
            assert len(re.findall(r"(?<!\\)&", line)) + 1 + spans == columns


def test_latex_rows_fill_the_columns_and_rules_part_the_sections(table: Table) -> None:
    text = to_latex(table)
    assert r"\begin{tabular}{lrrrrr}" in text
    rows = latex_rows(text)
    assert len(rows) == 1 + 6
    assert {len(re.findall(r"(?<!\\)&", line)) for line in rows} == {5}
    assert [text.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 3, 1]
    assert r"\textbf{92.00}{\scriptsize\,$\pm$\,2.00}" in text
    assert r"\underline{82.00}{\scriptsize\,$\pm$\,2.00}" in text
    assert r"art\_painting" in text and "FedProx & -- & --" in text


def test_latex_escapes_what_it_would_read_as_commands(table: Table) -> None:
    expected = (
        r"A\_b \& 50\% \#1 \{x\} \textasciitilde{}\textasciicircum{}\textbackslash{} \$y\$ {[}z{]} ''q'' "
        r"\textless{}$\beta$\textbar{}$\lambda$$_1$\textgreater{} ? ü *s*"
    )
    assert any(row.startswith(f"{expected} & ") for row in latex_rows(to_latex(table)))


GROUPED = Table(
    suite="pairs",
    variant="",
    caption="With and without",
    columns=("L_COM", "AVG plain", "AVG <b>", "AVG gain"),
    sections=(
        (
            Row(
                "fedavg",
                "FedAvg",
                (Cell("✓", mean=1.0), Cell("60.00"), Cell("70.00"), Cell("+10.00", p=0.0004, signs=("*",))),
            ),
        ),
    ),
    footnotes=(Footnote("a note"),),
    groups=("", "AVG", "AVG", "AVG"),
    reference="the method & nothing else",
)


def test_latex_sets_shared_headings_above_their_columns() -> None:
    text = to_latex(GROUPED)
    assert r" &  & \multicolumn{3}{c}{AVG} \\" in text
    assert r"\cmidrule(lr){3-5}" in text
    assert r"Method & L\_COM & plain & \textless{}b\textgreater{} & gain \\" in text
    assert r"FedAvg & $\surd$ & 60.00 & 70.00 & +10.00\textsuperscript{*} \\" in text


@pytest.mark.skipif(
    not (shutil.which("pdflatex") or shutil.which("tectonic")), reason="no LaTeX engine on this machine"
)
@pytest.mark.parametrize("packages", ["booktabs", "booktabs,graphicx"])
def test_latex_compiles_and_stays_on_the_page(table: Table, tmp_path: Path, packages: str) -> None:
    tables = [table, GROUPED, *tables_of(load_run(golden_run(tmp_path / "golden")))]
    (tmp_path / "paper.tex").write_text(
        f"\\documentclass{{article}}\n\\usepackage{{{packages}}}\n\\begin{{document}}\n"
        + "".join(map(to_latex, tables))
        + "\\end{document}\n",
        encoding="utf-8",
    )
    engine = (
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode"]
        if shutil.which("pdflatex")
        else ["tectonic"]
    )
    done = subprocess.run([*engine, "paper.tex"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 0
    assert ("Overfull" in done.stdout) == ("graphicx" not in packages)


def test_csv_gives_back_every_number(table: Table) -> None:
    lines = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert len(lines) == 6 * 5
    assert {(line["suite"], line["table"], line["variant"]) for line in lines} == {
        ("quickstart", "accuracy", "")
    }
    names = ("mean", "std", "n", "low", "high", "p", "p_best")
    read = {(line["label"], line["column"]): [line[name] for name in names] for line in lines}
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            for text, value in zip(read[row.label, column], numbers(cell), strict=True):
                assert (float(text) if text else None) == (value if value is None else pytest.approx(value))
    assert read["FedProx", "AVG"] == ["", "", "0", "", "", "", ""]


def numbers(cell: Cell) -> tuple[float | None, ...]:
    low, high = cell.interval or (None, None)
    return cell.mean, cell.std, cell.n, low, high, cell.p, cell.p_best


def test_the_terminal_shows_every_number_at_any_width(table: Table) -> None:
    expected = {cell.text.replace("± ", "±") for row in table.rows for cell in row.cells}
    for width in (200, 90, 70):
        console = Console(width=width, file=io.StringIO(), record=True)
        console.print(to_terminal(table))
        text = console.export_text()
        assert max(map(cell_len, text.splitlines())) <= width
        assert all(value in text for value in expected)
        assert "…" not in text
        assert "Failed: " in text


def test_the_terminal_marks_best_and_second(table: Table) -> None:
    console = Console(width=200, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(to_terminal(table))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[1m92.00 ±2.00\x1b[0m" in text
    assert "\x1b[4m82.00 ±2.00\x1b[0m" in text


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
    shown = [cell for row in table.rows for cell in row.cells]
    assert len(cells) == len(shown)
    names = ("data-value", "data-std", "data-n", "data-low", "data-high", "data-p", "data-p-best")
    for attributes, cell in zip(cells, shown, strict=True):
        for name, value in zip(names, numbers(cell), strict=True):
            if name != "data-std":
                text = attributes.get(name)
                assert (float(text) if text else 0) == pytest.approx(value or 0)
    best = next(attributes for attributes, cell in zip(cells, shown, strict=True) if cell.p is not None)
    assert best["title"] == "3 seeds; 95 % interval 71.02 to 75.98; p <0.001 against FedAvg"


def test_html_marks_best_and_second_and_escapes_everything() -> None:
    text = to_html(GROUPED)
    heads = Outline(text).of("th")
    assert ({"scope": "colgroup", "colspan": "3"}, "AVG") in heads
    assert ({"scope": "col", "rowspan": "2"}, "L_COM") in heads
    assert ({"scope": "col"}, "<b>") in heads
    assert 'title="p &lt;0.001 against the method &amp; nothing else"' in text
    assert "<b>" not in text
    row = Row(
        "x", "X", (Cell("1", mark="best"), Cell("2", mark="second"), Cell("3"), Cell("4", signs=("≈",)))
    )
    marked = to_html(replace(GROUPED, sections=((row,),)))
    assert "<td><b>1</b></td><td><u>2</u></td><td>3</td><td>4<sup>≈</sup></td>" in marked


def test_p_values_are_never_zero() -> None:
    assert [probability(p) for p in (0.0, 0.00099, 0.001, 0.0456, 1.0)] == [
        "<0.001",
        "<0.001",
        "0.001",
        "0.046",
        "1.000",
    ]


def test_shared_headings_are_whole_in_markdown_and_in_the_terminal() -> None:
    heading = to_markdown(GROUPED).splitlines()[2]
    assert [name.strip() for name in heading.split("|")[1:-1]] == [
        "Method",
        r"L\_COM",
        "AVG plain",
        r"AVG \<b\>",
        "AVG gain",
    ]
    console = Console(width=80, file=io.StringIO(), record=True)
    console.print(to_terminal(GROUPED))
    lines = console.export_text().splitlines()
    assert any(line.split() == ["AVG", "AVG", "AVG"] for line in lines)
    assert any(line.split() == ["Method", "L_COM", "plain", "<b>", "gain"] for line in lines)
