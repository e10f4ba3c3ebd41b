"""Names in records and suites that become paths or are looked up: what they may look like.

Records and suites come from strangers too, so a name must neither lead out of a folder nor stand for a file
of Python code.
"""

from __future__ import annotations

import re
from pathlib import PureWindowsPath
from typing import Annotated, Final

from pydantic import AfterValidator, Field

LONGEST: Final = 100
"""Characters of a name; a file system takes 255 bytes."""
MOST_ROUNDS: Final = 1_000_000

Natural = Annotated[int, Field(ge=0, le=2**53)]
"""A count that JSON, JavaScript and floating-point numbers hold exactly."""
RoundNumber = Annotated[int, Field(ge=0, le=MOST_ROUNDS)]


def _names_a_folder(name: str) -> str:
    if not re.fullmatch(r"\w[\w.+-]*", name):
        raise ValueError("it names a folder; use letters, digits, '_', '-', '+' and '.' only")
    if len(name) > LONGEST:
        raise ValueError(f"it names a folder; use at most {LONGEST} characters")
    return name


def _is_no_path(name: str) -> str:
    if not re.fullmatch(r"\w[\w.-]*(\+\w[\w.-]*)*", name) or name.endswith(".py"):
        raise ValueError("it is not the name of a method")
    return name


def _stays_inside(path: str) -> str:
    steps = PureWindowsPath(path)  # knows both kinds of slashes, and drives
    if steps.anchor or not steps.parts or ".." in steps.parts or "\0" in path:
        raise ValueError("it leads out of the folder of the run")
    return path


FolderName = Annotated[str, AfterValidator(_names_a_folder)]
"""The name of a suite, which is that of its folder and of its files."""
MethodName = Annotated[str, AfterValidator(_is_no_path)]
"""The name of a method, with those around it: never a path, whose file would be executed."""
Inside = Annotated[str, AfterValidator(_stays_inside)]
"""A path relative to the folder of a run, and inside it."""
