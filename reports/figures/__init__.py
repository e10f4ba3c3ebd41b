"""Figures of a run: one module per kind of figure, and a registry of those that the records support."""

from collections.abc import Iterable
from pathlib import Path

from reports.figures.critical_difference import pictures as ranking_pictures
from reports.figures.picture import Picture
from reports.figures.registry import supported
from reports.figures.sensitivity import sweep_pictures

__all__ = ["Picture", "ranking_pictures", "supported", "sweep_pictures", "write_pictures"]


def write_pictures(pictures: Iterable[Picture], folder: Path) -> list[Path]:
    """Draw the figures and write each as PNG and PDF."""
    return [path for picture in pictures for path in picture.write(folder)]
