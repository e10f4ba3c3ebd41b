"""The text of a docstring as Markdown."""

import re
from itertools import groupby

from reports.render.markdown import escape

INDENTED = "    "
"""What a line of an equation begins with."""


def prose(text: str) -> str:
    """Paragraphs as they are, equations on lines of their own as blocks; nothing turns into markup."""
    blocks = []
    for equation, lines in groupby(text.splitlines(), key=lambda line: line.startswith(INDENTED)):
        shown = "\n".join(line if equation else _escaped(line) for line in lines)
        blocks.append(f"\n```text\n{shown}\n```\n" if equation else shown)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(blocks)).strip()


def _escaped(line: str) -> str:
    """A line with its `code` left alone, and with underscores inside words, which are no markup."""
    parts = re.split(r"(`[^`]+`)", line)
    shown = "".join(part if part.startswith("`") else escape(part) for part in parts)
    return re.sub(r"(?<=\w)\\_(?=\w)", "_", shown)
