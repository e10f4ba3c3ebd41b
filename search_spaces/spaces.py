"""The search space of every method.

One file per method: `hyperparameters` are the method's own, `training` are keys of the suite's training
section. A file is checked against the method itself. For a method without a file, a space is derived from its
fields (`derived.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import UserError
from bench.suite.methods import AROUND, METHODS, WRAPPERS
from bench.suite.yaml_files import read_mapping
from bench.validation import validated
from search_spaces.checks import check_space
from search_spaces.derived import derived_space
from search_spaces.model import Space

if TYPE_CHECKING:
    from methods.base import FedAlgorithm

FOLDER = Path(__file__).parent


def load_space(method: str, folder: Path = FOLDER) -> Space:
    """The search space of a method, every value of which the method accepts; derived if it has no file.

    A method around another one, `outer+inner`, has the keys of both: the inner one's begin with `inner.`. The
    optimiser is the inner one's.
    """
    method = METHODS.resolve(method)
    kind = METHODS.load(method)
    outer, plus, inner = method.partition(AROUND)
    space = _own_space(outer, kind, folder)
    if not plus:
        return space
    inside = load_space(inner, folder)
    nested = {f"inner.{key}": value for key, value in inside.hyperparameters.items()}
    return Space(method=method, hyperparameters=space.hyperparameters | nested, training=inside.training)


def space_file(method: str, folder: Path = FOLDER) -> Path | None:
    """The file with the space of a method or wrapper: in the folder, or beside the class; None: none."""
    for file in _places(method, folder):
        if file.is_file():
            return file
    return None


def note_on_derivation(method: str, folder: Path = FOLDER) -> str:
    """One sentence that the space is derived, and how to write it down; empty if it is read from a file."""
    method = METHODS.resolve(method)
    inmost = METHODS.inmost(method)
    if space_file(inmost, folder):
        return ""
    file = _source_file(METHODS.load(inmost))
    how = f"; write it down with `bench new space {_shown(file)}`" if file and METHODS.is_own(inmost) else ""
    return f"derived from the fields of {inmost}{how}"


def _own_space(method: str, kind: type[FedAlgorithm], folder: Path) -> Space:
    """Without what a method inside adds."""
    file = space_file(method, folder)
    if file is None:
        return derived_space(method, kind)
    where = f"search space {file.name}"
    space = validated(Space, read_mapping(file, "the keys method, hyperparameters and training"), where)
    if space.method != method:
        raise UserError(f"{where} is for method '{space.method}': name the file after its method")
    if space.training and method in WRAPPERS.names():
        raise UserError(f"{where}: the method inside has the optimiser; write 'training: {{}}'")
    check_space(space, kind, where)
    return space


def _places(method: str, folder: Path) -> Iterator[Path]:
    name = f"{method}.yaml"
    yield folder / name
    kind = WRAPPERS.load(method) if method in WRAPPERS.names() else METHODS.load(method)
    if source := _source_file(kind):  # of a method that a user or another package brings along
        yield source.with_name(name)


def _shown(file: Path) -> str:
    """The path as a user would type it."""
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)


def _source_file(kind: type[FedAlgorithm]) -> Path | None:
    """The file that defines the class; None for a class from a notebook."""
    try:
        return Path(inspect.getfile(kind))
    except (TypeError, OSError):
        return None
