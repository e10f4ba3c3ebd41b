"""What the fault tests did and found, as the tables of a page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Line:
    """One kind of fault and what became of it."""

    fault: str
    count: int
    outcome: str


class FaultReport:
    """Is told by each test what it did; the order of the page is that of the sections' names."""

    def __init__(self) -> None:
        self._sections: dict[str, list[Line]] = {}

    def add(self, section: str, fault: str, count: int, outcome: str) -> None:
        self._sections.setdefault(section, []).append(Line(fault, count, outcome))

    @property
    def lines(self) -> Iterable[str]:
        """The tables in Markdown."""
        for section, lines in self._sections.items():
            yield f"## {section}"
            yield ""
            yield "| fault | how often | outcome |"
            yield "|---|---:|---|"
            yield from (f"| {line.fault} | {line.count} | {line.outcome} |" for line in lines)
            yield ""

    def write(self, file: Path, introduction: str) -> None:
        file.write_text("\n".join([introduction.strip(), "", *self.lines]).rstrip() + "\n", encoding="utf-8")
