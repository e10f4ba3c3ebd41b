"""A table for a paper: needs the package booktabs; with graphicx it shrinks to the width of the page."""

import re
import unicodedata

from reports.tables.table import Entry, Row, Table

MANY_COLUMNS = 9
"""With this many columns or more, the table is set in a smaller font."""


def _greek_command(letter: str) -> str:
    name = unicodedata.name(letter).split()[-1].lower().replace("lamda", "lambda")
    return "\\" + (name.capitalize() if letter.isupper() else name)


_SYMBOLS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "[": "{[}",  # after the end of a line, a bare bracket would be read as an option
    "]": "{]}",
    "–": "--",
    "—": "---",
    "†": r"\dag{}",
    "‡": r"\ddag{}",
    "`": "'",
    "’": "'",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_MATHS = {
    "±": r"\pm",
    "−": "-",
    "×": r"\times",
    "≈": r"\approx",
    "≤": r"\le",
    "≥": r"\ge",
    "∞": r"\infty",
    "✓": r"\surd",
    "◇": r"\diamond",
    "★": r"\star",
    "↑": r"\uparrow",
    "⊣": r"\dashv",
    "√": r"\surd",
    "·": r"\cdot",
    **{letter: _greek_command(letter) for letter in "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ"},
    **{character: f"_{digit}" for digit, character in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    **{character: f"^{digit}" for digit, character in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
}

_SHRUNK = (
    r"\ifdim\wd0>\linewidth\ifdefined\resizebox\resizebox{\linewidth}{!}{\usebox0}"
    r"\else\usebox0\fi\else\usebox0\fi"
)
"""Prints the table in box 0, shrunk to the width of the line if necessary."""


def to_latex(table: Table) -> str:
    """A `table*` environment with caption, label, rules between the sections, and footnotes below."""
    sections = [[_row(row) for row in section] for section in table.sections]
    body = [line for section in sections for line in (r"\midrule", *section)]
    return (
        "\n".join(
            [
                r"\begin{table*}[t]",
                r"\centering",
                rf"\caption{{{escape(table.caption)}}}",
                rf"\label{{tab:{_slug(table)}}}",
                r"\small" if len(table.columns) < MANY_COLUMNS else r"\scriptsize",
                r"\setlength{\tabcolsep}{4pt}",
                rf"\sbox0{{\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
                r"\toprule",
                *_head(table),
                *body,
                r"\bottomrule",
                r"\end{tabular}}",
                _SHRUNK,
                r"\par\smallskip",
                r"\begin{minipage}{\linewidth}",
                r"\footnotesize",
                *(rf"{_signs((note.sign,))} {escape(note.text)}\par".strip() for note in table.footnotes),
                r"\end{minipage}",
                r"\end{table*}",
            ]
        )
        + "\n"
    )


def escape(text: str) -> str:
    """Text that LaTeX prints literally; characters missing from its default fonts become question marks."""
    return "".join(map(_character, text))


def _character(character: str) -> str:
    if character in _SYMBOLS:
        return _SYMBOLS[character]
    if character in _MATHS:
        return f"${_MATHS[character]}$"
    if not character.isprintable():  # a line break would end the caption, and others stop LaTeX
        return " "
    known = character.isascii() or (character.isalpha() and ord(character) < 256)
    return character if known else "?"


def _head(table: Table) -> list[str]:
    """The headings; shared headings are above a rule."""
    names = " & ".join(["Method", *(escape(name) for _, group in table.headings for name in group)]) + r" \\"
    if not table.groups:
        return [names]
    spans, rules, first = [""], [], 2
    for title, group in table.headings:
        spans.append(rf"\multicolumn{{{len(group)}}}{{c}}{{{escape(title)}}}" if title else "")
        if title:
            rules.append(rf"\cmidrule(lr){{{first}-{first + len(group) - 1}}}")
        first += len(group)
    return [" & ".join(spans) + r" \\", "".join(rules), names]


def _row(row: Row) -> str:
    label = escape(row.label)
    label = rf"\textit{{{label}}}" if row.bound else label
    return " & ".join([label + _signs(row.signs), *map(_value, row.entries)]) + r" \\"


def _value(entry: Entry) -> str:
    mean, _, spread = entry.text.partition(" ± ")
    text = escape(mean)
    if entry.mark == "best":
        text = rf"\textbf{{{text}}}"
    elif entry.mark == "second":
        text = rf"\underline{{{text}}}"
    if spread:
        text += rf"{{\scriptsize\,$\pm$\,{escape(spread)}}}"
    return text + _signs(entry.signs)


def _signs(signs: tuple[str, ...]) -> str:
    shown = ", ".join(filter(None, signs))
    return rf"\textsuperscript{{{escape(shown)}}}" if shown else ""


def _slug(table: Table) -> str:
    parts = (table.suite, table.variant, "" if table.name == "accuracy" else table.name)
    return "-".join(re.findall(r"[A-Za-z0-9.]+", " ".join(parts)))
