"""A table as Markdown, as CSV and in the terminal."""

import csv
import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from reports.render import to_csv, to_markdown, to_terminal
from reports.tables.table import Table, number, probability, signed_number
from tests.kit.rendering import GROUPED, numbers


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
    assert r"- <sup>\*</sup> significantly different from FedAvg (paired t-test" in text
    assert by_label["FedAvg"][0] == "<ins>82.00 ± 2.00</ins>"
    assert by_label["FedProx"] == ["–"] * 5
    assert by_label["*Local*"][0] == "50.00 ± 0.00"
    assert by_label[cells[5][0]][0] == "70.00 ± 0.00<sup>4/5</sup>"
    assert "- <sup>4/5</sup> 4 of 5 seeds." in text
    assert r"<β" not in text.replace(r"\<β", "")


def test_csv_gives_back_every_number(table: Table) -> None:
    lines = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert len(lines) == 6 * 5
    assert {(line["suite"], line["table"], line["variant"]) for line in lines} == {
        ("quickstart", "accuracy", "")
    }
    names = ("mean", "std", "n", "low", "high", "p", "p_best")
    read = {(line["label"], line["column"]): [line[name] for name in names] for line in lines}
    for row in table.rows:
        for column, entry in zip(table.columns, row.entries, strict=True):
            for text, value in zip(read[row.label, column], numbers(entry), strict=True):
                assert (float(text) if text else None) == (value if value is None else pytest.approx(value))
    assert read["FedProx", "AVG"] == ["", "", "0", "", "", "", ""]


def test_the_terminal_shows_every_number_at_any_width(table: Table) -> None:
    expected = {entry.text.replace("± ", "±") for row in table.rows for entry in row.entries}
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
