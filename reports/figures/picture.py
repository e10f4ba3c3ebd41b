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

DOTS_PER_INCH = 200
# No date and no version: the same records, the same bytes.
_ABOUT_PNG = {"Software": None}
_ABOUT_PDF = {"CreationDate": None, "Creator": None, "Producer": None}


@dataclass(frozen=True)
class Picture:
    """A figure: the name of its files and the function that draws it."""

    name: str
    draw: Callable[[], "Figure"]

    def files(self, folder: Path) -> list[Path]:
        """A PNG to look at and a PDF to print."""
        return [folder / f"{self.name}.{suffix}" for suffix in ("png", "pdf")]

    def write(self, folder: Path) -> list[Path]:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.backends.backend_pdf import FigureCanvasPdf

        png, pdf = paths = self.files(folder)
        with house_style(), warnings.catch_warnings():
            # about labels with characters that the font lacks, or that are longer than the figure is wide
            warnings.filterwarnings("ignore", "Glyph|constrained_layout")
            figure = self.draw()
            figure.set_dpi(DOTS_PER_INCH)
            # `savefig` would arrange each file anew, and draw everything twice for that
            with replacing(png) as draft:
                FigureCanvasAgg(figure).print_png(draft, metadata=_ABOUT_PNG)
            figure.set_layout_engine("none")  # all is in its place now
            with replacing(pdf) as draft:
                FigureCanvasPdf(figure).print_pdf(draft, metadata=_ABOUT_PDF)
        return paths
