"""The diagram of average ranks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.figures import write_pictures
from reports.figures.critical_difference import pictures as ranking_pictures
from reports.figures.style import house_style


@dataclass(frozen=True)
class Ranks:
    methods: tuple[str, ...] = ("FedAvg", "FedLSA", "MOON")
    average_ranks: tuple[float, ...] = (2.8, 1.2, 2.0)
    critical_difference: float = 0.9
    p_value: float = 0.01
    cliques: tuple[tuple[str, ...], ...] = (("FedLSA", "MOON"), ("MOON", "FedAvg"))


def test_the_critical_difference_diagram_joins_what_cannot_be_told_apart(tmp_path: Path) -> None:
    (picture,) = ranking_pictures(Ranks())
    with house_style():
        (panel,) = picture.draw().axes
    bars: list[Any] = [line for line in panel.get_lines() if line.get_linewidth() == 3.5]
    spans = [(min(bar.get_xdata()), max(bar.get_xdata())) for bar in bars]
    assert [span[0] < 1.2 and 2.0 < span[1] < 2.8 for span in spans] == [True, False]
    assert 1.2 < spans[1][0] < 2.0 and spans[1][1] > 2.8
    scale: Any = next(line for line in panel.get_lines() if line.get_marker() == "|")
    assert list(scale.get_xdata()) == [1, 1.9]
    texts = [text.get_text().strip() for text in panel.texts]
    assert texts[-3:] == ["FedLSA  1.20", "MOON  2.00", "2.80  FedAvg"]


def test_only_a_ranking_has_a_diagram(tmp_path: Path) -> None:
    assert [file.name for file in write_pictures(ranking_pictures(Ranks()), tmp_path)] == [
        "critical_difference.png",
        "critical_difference.pdf",
    ]
    assert write_pictures(ranking_pictures(None), tmp_path) == []
