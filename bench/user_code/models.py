"""A user's own Python file: its copy in the cache, its digest, and the function in it that builds a model."""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from bench.data.cache import cache_root
from bench.errors import UserError

FOLDER = "models"
DIGEST_LENGTH = 16


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


def keep_source(text: str) -> Path:
    """Store a file's text in the cache under its digest; the path is relative to the cache.

    So every process of a run, whatever its working directory, reads the text that was planned.
    """
    place = Path(FOLDER, f"{digest_of(text)}.py")
    target = cache_root() / place
    try:
        if not target.exists() or _read(target) != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(f".{target.name}.{os.getpid()}")
            draft.write_text(text, encoding="utf-8")
            draft.replace(target)
    except OSError as error:
        raise UserError(
            f"cannot write to the cache {cache_root()}: {error.strerror or error}; make room there or set "
            "BENCH_CACHE to another folder"
        ) from error
    return place


def source_at(path: str) -> str:
    """The text of a Python file; relative paths start from the current directory, then from the cache."""
    given = Path(path).expanduser()
    for candidate in (given, cache_root() / given):
        if candidate.is_file():
            return _read(candidate)
    raise UserError(f"model: there is no file {path} (current directory: {Path.cwd()}); correct its 'path'")


def planned_source(path: str, digest: str) -> str:
    """The text with this digest: the copy in the cache, or else the file itself if it has not changed."""
    kept = cache_root() / FOLDER / f"{digest}.py"
    text = _read(kept) if kept.is_file() else source_at(path)
    if digest_of(text) != digest:
        raise UserError(
            f"model: {path} has the digest {digest_of(text)}, not {digest}: it changed after the run was "
            "planned; run the suite again, or correct its 'digest'"
        )
    return text


def built(
    text: str, path: str, function: str | None, arguments: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """What the file's function returns for these arguments; errors name the line of the file."""
    try:
        module = _executed(text, path)
        return _function(module, path, function)(*arguments, **options)
    except UserError:
        raise
    # The user's own code may raise anything.
    except Exception as error:
        lines = [
            frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path
        ]
        line = error.lineno if isinstance(error, SyntaxError) else (lines or [None])[-1]
        where = f"{path}, line {line}" if line else path
        hint = " (keep the model in one file, or install what it imports)" if _is_import(error) else ""
        raise UserError(f"model: {where}: {type(error).__name__}: {error}{hint}") from error


def _is_import(error: Exception) -> bool:
    return isinstance(error, ModuleNotFoundError)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"model: cannot read {path}: {error}; give a Python file") from error


def _executed(text: str, path: str) -> ModuleType:
    module = ModuleType(f"_bench_model_{digest_of(text)}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # dataclasses and pickle look it up there
    exec(compile(text, path, "exec"), module.__dict__)
    return module


def _function(module: ModuleType, path: str, name: str | None) -> Callable[..., Any]:
    """The one of this name; without a name, `model`, or the only public function or module class."""
    candidates = {
        key: value
        for key, value in vars(module).items()
        if not key.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
        and (inspect.isfunction(value) or (inspect.isclass(value) and issubclass(value, nn.Module)))
    }
    chosen = name or ("model" if "model" in candidates else None)
    if chosen is None and len(candidates) == 1:
        chosen = next(iter(candidates))
    if chosen is None or not callable(getattr(module, chosen, None)):
        found = ", ".join(candidates) or "none"
        raise UserError(
            f"model: {path} must define {f'the function {chosen}' if chosen else 'a function'} "
            f"model(input_shape, classes); found {found}: name one by 'function'"
        )
    found_function: Callable[..., Any] = getattr(module, chosen)
    return found_function
