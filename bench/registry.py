"""Names to classes: one file or folder each in a package, or an entry point of somebody else's package."""

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Generic, TypeVar

from bench.errors import UserError, nearest

T = TypeVar("T")

MAIN = "method.py"
"""The file of a folder that defines its class."""


class Registry(Generic[T]):
    """Finds the classes of one kind by file name, without importing anything before `load`.

    A file `NAME.py` of the package, or `NAME/method.py` of a class that takes several files, holds exactly
    one public subclass of the base class; other folders, `base.py` and names with a leading underscore are
    not counted. An entry point gives the class itself. Where both have a name, the file wins: an installed
    package cannot replace what the project ships.
    """

    def __init__(self, package: str, group: str, kind: str, base: Callable[[], type[T]]) -> None:
        self.package = package
        self.group = group
        self.kind = kind
        self._base = base

    def names(self) -> list[str]:
        return sorted({*self._files(), *self._entry_points()})

    def ships(self, name: str) -> bool:
        """Whether the package has a file for this name."""
        return name in self._files()

    def summaries(self) -> dict[str, str]:
        """Name → first line of the module's docstring, read from the source text."""
        files, points = self._files(), self._entry_points()
        return {
            name: _first_docstring_line(files[name]) if name in files else _origin(points[name])
            for name in self.names()
        }

    def load(self, name: str) -> type[T]:
        if name in self._files():
            return self._single_class(name)
        point = self._entry_points().get(name)
        if point is None:
            raise UserError(f"unknown {self.kind} '{name}'; {nearest(name, self.names())}")
        found = point.load()
        if not (inspect.isclass(found) and issubclass(found, self._base())):
            raise UserError(
                f"{self.kind} '{name}': the entry point {point.value} is no subclass of "
                f"{self._base().__name__}; correct it in the package that declares it"
            )
        return found

    def _files(self) -> dict[str, Path]:
        spec = importlib.util.find_spec(self.package)
        folders = list(spec.submodule_search_locations or []) if spec else []
        modules: dict[str, Path] = {}
        for folder in folders:
            modules |= _modules(Path(folder), Path(folder).stat().st_mtime_ns)
        return modules

    def _entry_points(self) -> Mapping[str, EntryPoint]:
        return _installed(self.group, tuple(sys.path))

    def _module(self, name: str) -> ModuleType:
        file = self._files()[name]
        inside = f".{file.stem}" if file.parent.name == name else ""
        try:
            return importlib.import_module(f"{self.package}.{name}{inside}")
        except SyntaxError as error:
            raise UserError(
                f"{self.kind} '{name}': {error.filename}, line {error.lineno}: {error.msg}; correct it there"
            ) from error

    def _single_class(self, name: str) -> type[T]:
        base = self._base()
        module = self._module(name)
        found = [
            value
            for attribute, value in vars(module).items()
            if inspect.isclass(value)
            and issubclass(value, base)
            and value.__module__ == module.__name__
            and not attribute.startswith("_")
        ]
        if len(found) != 1:
            raise UserError(
                f"{self.kind} '{name}': {self._files()[name]} must define exactly one public subclass of "
                f"{base.__name__}, but has {len(found)}; give helpers a leading underscore"
            )
        return found[0]


@lru_cache(maxsize=64)
def _modules(folder: Path, changed: int) -> Mapping[str, Path]:
    """Listed again when the folder has changed: a plan of many cells asks for names thousands of times."""
    found = {
        module.name: folder / module.name / MAIN if module.ispkg else folder / f"{module.name}.py"
        for module in pkgutil.iter_modules([str(folder)])
        if module.name != "base" and not module.name.startswith("_")
    }
    return {name: file for name, file in found.items() if file.is_file()}


def source_files(kind: type) -> list[Path]:
    """The file that defines a class; all files of its folder if the class takes several."""
    file = Path(inspect.getfile(kind))
    return sorted(file.parent.glob("*.py")) if file.name == MAIN else [file]


@lru_cache(maxsize=16)
def _installed(group: str, path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    """Looked up once per search path: it reads a file of every installed package, some 40 ms."""
    return {point.name: point for point in entry_points(group=group)}


def _first_docstring_line(path: Path) -> str:
    try:
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    except SyntaxError as error:
        return f"cannot be read: line {error.lineno}: {error.msg}"
    return docstring.splitlines()[0] if docstring else ""


def _origin(point: EntryPoint) -> str:
    return f"from the package {point.dist.name}" if point.dist else f"from {point.value}"
