"""The same table as Markdown, LaTeX, CSV and in the terminal."""

import csv
import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from reports_builder import Planned, write_run
from rich.cells import cell_len
from rich.console import Console

from reports.records import load_run
from reports.render import to_csv, to_latex, to_markdown, to_terminal
from reports.table import Table, number, signed_number
from reports.tables import domain_table

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
    assert by_label["FedAvg"][0] == "<ins>82.00 ± 2.00</ins>"
    assert by_label["FedProx"] == ["–"] * 5
    assert by_label["*Local*"][0] == "50.00 ± 0.00"
    assert by_label[cells[5][0]][0] == "70.00 ± 0.00<sup>2/3</sup>"
    assert "- <sup>2/3</sup> 2 of 3 seeds." in text
    assert r"<β" not in text.replace(r"\<β", "")


def latex_rows(text: str) -> list[str]:
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    return [line for line in body.splitlines() if line.endswith(r"\\")]


def test_latex_is_well_formed(table: Table) -> None:
    text = to_latex(table)
    assert re.findall(r"\\begin{([^}]*)}", text) == ["table*", "tabular", "minipage"]
    assert re.findall(r"\\end{([^}]*)}", text) == ["tabular", "minipage", "table*"]
    unescaped = re.sub(r"\\[\\{}&%$#_]", "", text.replace(r"\\" + "\n", "\n"))
    depth = 0
    for character in unescaped:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    assert unescaped.count("$") % 2 == 0
    assert not re.search("[%#~^]", unescaped)
    assert all(character.isascii() or character == "ü" for character in text)


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


@pytest.mark.skipif(
    not (shutil.which("pdflatex") or shutil.which("tectonic")), reason="no LaTeX engine on this machine"
)
def test_latex_compiles(table: Table, tmp_path: Path) -> None:
    source = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n%s\\end{document}\n"
    (tmp_path / "paper.tex").write_text(source % to_latex(table), encoding="utf-8")
    engine = (
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode"]
        if shutil.which("pdflatex")
        else ["tectonic"]
    )
    done = subprocess.run([*engine, "paper.tex"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 0


def test_csv_gives_back_every_number_unrounded(table: Table) -> None:
    lines = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert len(lines) == 6 * 5
    read = {(line["label"], line["column"]): (line["mean"], line["std"], line["n"]) for line in lines}
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            mean, std, n = read[row.label, column]
            assert (float(mean) if mean else None, float(std) if std else None) == (cell.mean, cell.std)
            assert int(n) == cell.n
    assert read["FedProx", "AVG"] == ("", "", "0")


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
