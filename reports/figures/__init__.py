"""Figures of a run: one module per kind of figure, and a registry of those that the records support."""

from pathlib import Path

from bench.records.reader import Run
from reports.figures.critical_difference import Ranked
from reports.figures.critical_difference import pictures as ranking_pictures
from reports.figures.registry import supported

__all__ = ["check_figures", "write_figures", "write_ranking"]


def check_figures(run: Run) -> None:
    """Raise a UserError if a figure cannot be made because a file is damaged."""
    supported(run)


def write_figures(run: Run, folder: Path) -> list[Path]:
    """Write every figure that the records support; a run without finished cells may have none."""
    return [path for picture in supported(run) for path in picture.write(folder)]


def write_ranking(ranking: Ranked | None, folder: Path) -> list[Path]:
    """Write the critical-difference diagram, if there is anything to rank."""
    return [path for picture in ranking_pictures(ranking) for path in picture.write(folder)]
