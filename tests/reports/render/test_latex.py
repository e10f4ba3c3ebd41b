"""A table for a paper."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bench.records.reader import load_run
from reports.render import to_latex
from reports.tables.kinds import tables_of
from reports.tables.table import Table
from tests.kit.rendering import GROUPED
from tests.kit.run_folders import golden_run


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
