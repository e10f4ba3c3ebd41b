"""What the fault tests did and found, as the tables of a page."""

from __future__ import annotations

import os
import re
from pathlib import Path

INTRODUCTION = """
# What faults do to a run

The tests behind `make test-faults` and `make fuzz` break runs and searches in the ways listed below and
check one promise: either the results are those of an undisturbed run, byte for byte except for times, or a
one-line error says what is wrong and what to do; and nothing that was finished is lost. A cell is lost if
it was planned and has no result in the end. The numbers were measured on a virtual machine with two cores
and no GPU, busy with other work. Two nodes are simulated on that machine, where the second does not see the
run folder of the first; for the cut network each node also has a separate network, with a switch between
them that fails. A row is kept until its test is run again.
"""
KILLED = "Processes killed (SIGKILL, at random moments)"
HEAD = ["| fault | how often | outcome |", "|---|---:|---|"]
ROW = re.compile(r"\| (?P<fault>.*) \| (?P<count>\d+) \| (?P<outcome>.*) \|")


class FaultReport:
    """Is told by each test what it did.

    What a page says of other faults stays there, so that some of the tests can be run again by themselves;
    delete the page to write all of it again.
    """

    def __init__(self) -> None:
        self._sections: dict[str, dict[str, str]] = {}

    def add(self, section: str, fault: str, count: int, outcome: str) -> None:
        """Record the outcome of a fault that was tried `count` times."""
        self._sections.setdefault(section, {})[fault] = f"| {fault} | {count} | {outcome} |"

    def write_if_asked(self) -> None:
        """To the file that BENCH_FAULT_REPORT names, if it does."""
        if file := os.environ.get("BENCH_FAULT_REPORT"):
            self.write(Path(file))

    def write(self, file: Path) -> None:
        """Make the page, or bring it up to date."""
        sections = _read(file)
        for name, rows in self._sections.items():
            sections.setdefault(name, {}).update(rows)
        lines = [INTRODUCTION.strip()]
        for name, rows in sections.items():
            lines += ["", f"## {name}", "", *HEAD, *rows.values()]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _read(file: Path) -> dict[str, dict[str, str]]:
    """Section → fault → its row."""
    found: dict[str, dict[str, str]] = {}
    rows: dict[str, str] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        if line.startswith("## "):
            rows = found.setdefault(line.removeprefix("## "), {})
        elif match := ROW.fullmatch(line):
            rows[match["fault"]] = line
    return found
