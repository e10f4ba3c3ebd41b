"""Methods from outside the package: the class in a user's file, and the source of a class as text."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import linecache
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from bench.errors import UserError

MODULES = "bench_own_methods_"
"""What the names of modules made from users' files begin with."""
Constant = (int, float, complex, str, bytes, bool, type(None))


def class_in_file(path: Path, base: type) -> type:
    """The one public subclass of `base` that the file defines."""
    module = _module_of(path)
    found = [
        value
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, base)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UserError(f"{path} defines no public subclass of {base.__name__}; derive your class from it")
    names = ", ".join(each.__name__ for each in found)
    raise UserError(
        f"{path} defines {len(found)} public subclasses of {base.__name__} ({names}); "
        "keep one and give the others a leading underscore"
    )


def is_own_file(kind: type) -> bool:
    """Whether the class was loaded from a user's file."""
    return kind.__module__.startswith(MODULES)


def snake_case(name: str) -> str:
    """MyMethod → my_method."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name.strip("_"))
    return words.lower()


def digest_of_source(kind: type) -> str:
    """Digest of the whole file if it is a user's, else of the class and what it uses of its module."""
    module = sys.modules.get(kind.__module__)
    if module is not None and is_own_file(kind):
        return hashlib.sha256(module.__dict__["__source__"].encode()).hexdigest()[:16]
    parts = dict(sorted(_sources(kind).items()))
    text = "\n\n".join(f"# {name}\n{source}" for name, source in parts.items())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _module_of(path: Path) -> ModuleType:
    """The user's file as a module; read again only when its text has changed."""
    try:
        source = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"no file {path}; give the path of a Python file with one method") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read ({error}); give the path of a Python file") from None
    name = MODULES + re.sub(r"\W", "_", str(path.resolve()))
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__dict__.get("__source__") == source:
        return loaded
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None:
        raise UserError(f"{path} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    module.__dict__["__source__"] = source
    sys.modules[name] = module
    linecache.checkcache(str(path.resolve()))
    try:
        exec(compile(source, str(path.resolve()), "exec"), module.__dict__)
    except BaseException as error:
        sys.modules.pop(name, None)
        if loaded is not None:
            sys.modules[name] = loaded
        if not isinstance(error, Exception):
            raise
        raise UserError(_failure(path, error)) from error
    return module


def _failure(path: Path, error: Exception) -> str:
    if isinstance(error, SyntaxError):
        return f"{path}, line {error.lineno}: {error.msg}; correct it there"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path.resolve())
    ]
    at = f", line {lines[-1]}" if lines else ""
    reason = str(error).splitlines()[0] if str(error) else ""
    return f"{path}{at} cannot be imported: {type(error).__name__}: {reason}; correct it there"


def _sources(kind: type) -> dict[str, str]:
    """Name → text of the class and of everything of its own module that it refers to."""
    found: dict[str, str] = {}
    waiting: list[Any] = [kind]
    while waiting:
        each = waiting.pop()
        name = f"{each.__module__}.{each.__qualname__}"
        if name in found:
            continue
        found[name] = _source(each)
        namespace = sys.modules[each.__module__].__dict__
        if isinstance(each, type):
            waiting += [base for base in each.__bases__ if base.__module__ == kind.__module__]
        for used in sorted({name for code in _codes(each) for name in code.co_names}):
            value = namespace.get(used)
            if isinstance(value, (type, FunctionType)) and value.__module__ == kind.__module__:
                waiting.append(value)
            elif used in namespace and isinstance(value, Constant):
                found[f"{each.__module__}.{used}"] = repr(value)
    return found


def _source(thing: type | FunctionType) -> str:
    """The text of a class or function, also of one from a notebook's cell."""
    tree, text = _file_of(thing)
    for node in ast.walk(tree):
        same_kind = ast.ClassDef if isinstance(thing, type) else ast.FunctionDef
        if isinstance(node, same_kind) and node.name == thing.__name__:
            segment = ast.get_source_segment(text, node)
            if segment is not None:
                return segment
    raise UserError(_not_found(thing))


def _file_of(thing: type | FunctionType) -> tuple[ast.Module, str]:
    """The parsed text of the file or of the notebook's cell that holds it.

    `inspect.getsource` knows the file of a class only through its module, which a notebook does not have;
    the code of the class's functions knows the cell.
    """
    files = [code.co_filename for code in _codes(thing)]
    module_file = getattr(sys.modules.get(thing.__module__), "__file__", None)
    for file in dict.fromkeys([*files, *([module_file] if module_file else [])]):
        text = "".join(linecache.getlines(file))
        if text and thing.__name__ in text:
            return ast.parse(text), text
    raise UserError(_not_found(thing))


def _not_found(thing: type | FunctionType) -> str:
    return (
        f"the source of {thing.__qualname__} cannot be found, but a result's identity includes it; "
        "define it in a file or in a notebook's cell"
    )


def _codes(thing: type | FunctionType) -> Iterator[CodeType]:
    """The code of a function, or of everything in a class body, with the functions inside."""
    if isinstance(thing, type):
        for value in vars(thing).values():
            inner = getattr(value, "__func__", getattr(value, "fget", value))
            inner = getattr(inner, "wrapped", inner)
            if isinstance(inner, FunctionType) and inner.__module__ == thing.__module__:
                yield from _nested(inner.__code__)
    else:
        yield from _nested(thing.__code__)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)
