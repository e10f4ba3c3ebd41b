"""Pictures of a run: one file a figure, and a registry of those that its records support."""

from pathlib import Path

from bench.records.beside import Beside
from bench.records.reader import Run
from reports.figures.critical_difference import Ranked
from reports.figures.critical_difference import pictures as ranking_pictures
from reports.figures.picture import Source
from reports.figures.registry import supported

__all__ = ["check_figures", "write_figures", "write_ranking"]


def check_figures(run: Run, beside: Beside) -> None:
    """Refuse files that no figure can be made of, before anything else is written."""
    supported(Source(run, beside))


def write_figures(run: Run, folder: Path, beside: Beside | None = None) -> list[Path]:
    """Write every figure that can be made of these records; a run without a finished cell may have none."""
    pictures = supported(Source(run, beside or Beside()))
    return [path for picture in pictures for path in picture.write(folder)]


def write_ranking(ranking: Ranked | None, folder: Path) -> list[Path]:
    """Write the critical-difference diagram, if there is anything to rank."""
    return [path for picture in ranking_pictures(ranking) for path in picture.write(folder)]
