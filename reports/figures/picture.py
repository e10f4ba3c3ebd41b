"""A figure that can be drawn and written to files."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.records.files import replacing
from reports.figures.style import house_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_METADATA: dict[str, dict[str, str | None]] = {  # no date and no version: the same records, the same bytes
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


@dataclass(frozen=True)
class Picture:
    """A figure: the name of its files and the function that draws it."""

    name: str
    draw: Callable[[], "Figure"]

    def files(self, folder: Path) -> list[Path]:
        """A PNG to look at and a PDF to print."""
        return [folder / f"{self.name}.{suffix}" for suffix in _METADATA]

    def write(self, folder: Path) -> list[Path]:
        paths = self.files(folder)
        with house_style(), warnings.catch_warnings():
            # about labels with characters that the font lacks, or that are longer than the figure is wide
            warnings.filterwarnings("ignore", "Glyph|constrained_layout")
            figure = self.draw()
            for path, (suffix, metadata) in zip(paths, _METADATA.items(), strict=True):
                with replacing(path) as temporary:
                    figure.savefig(temporary, format=suffix, dpi=200, metadata=metadata)
        return paths
