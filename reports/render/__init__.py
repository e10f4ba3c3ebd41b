"""Tables as text: one module per format."""

from reports.render.csv_rows import to_csv
from reports.render.html import to_html
from reports.render.latex import to_latex
from reports.render.markdown import to_markdown
from reports.render.terminal import to_terminal

__all__ = ["to_csv", "to_html", "to_latex", "to_markdown", "to_terminal"]
