"""Files of the user that Python imports in place of our packages, such as `reports.py` beside a script."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from bench.errors import UserError

PACKAGES = ("methods", "reports", "search_spaces")
_ROOT = Path(__file__).parents[2]


def refuse_shadowed_packages() -> None:
    """Call it before the first import of these packages; a UserError names what is in the way."""
    for name in PACKAGES:
        module = sys.modules.get(name)
        _refuse(name, module.__spec__ if module else PathFinder.find_spec(name))


def refuse_packages_in(folder: Path) -> None:
    """The same for Ray's workers, which look for what they import in this folder first."""
    for name in ("bench", "methods"):
        _refuse(name, PathFinder.find_spec(name, [str(folder), *sys.path]))


def _refuse(name: str, spec: ModuleSpec | None) -> None:
    if spec is None:  # left to whatever an editable installation has added
        return
    found = _place(spec.origin, spec.submodule_search_locations)
    ours = _ROOT / name
    if ours.is_dir() and not found.resolve().is_relative_to(ours.resolve()):
        raise UserError(
            f"{found} hides the package '{name}' of bench, because Python looks there first: rename it, or "
            "start from a different folder"
        )


def _place(file: str | None, folders: Sequence[str] | None) -> Path:
    """The folder of a package, with or without `__init__.py`, or the file of a module."""
    return Path(next(iter(folders)) if folders else file or "")
