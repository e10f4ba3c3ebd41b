"""The source of a function or class that was defined in a notebook or script, as a file of its own."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from bench.errors import UserError


def standalone_source(factory: Callable[..., Any]) -> str:
    """Python source that defines the factory, preceded by all it uses: imports, constants, definitions.

    Definitions from the factory's own module are copied; those from other modules are imported.
    """
    if not (inspect.isfunction(factory) or inspect.isclass(factory)) or factory.__name__ == "<lambda>":
        raise UserError(
            "a model must be a named function or class to call with (input_shape, classes), not "
            f"{_kind(factory)}: its weights are drawn again for each seed"
        )
    collected = _Collected(factory.__module__)
    collected.define(factory)
    parts = ["from __future__ import annotations", *collected.imports, *collected.definitions]
    return "\n\n".join(parts) + "\n"


class _Collected:
    """Imports and definitions, each after those that it needs."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.imports: list[str] = []
        self.definitions: list[str] = []
        self._seen: set[str] = set()

    def define(self, thing: Callable[..., Any]) -> None:
        """Append the source of a function or class, and of what it uses."""
        if thing.__name__ in self._seen:
            return
        self._seen.add(thing.__name__)
        try:
            source = textwrap.dedent(inspect.getsource(thing))
        except (OSError, TypeError) as error:
            raise UserError(
                f"the source of '{thing.__name__}' cannot be read; put it into a Python file and set "
                "model to {name: file, path: FILE}"
            ) from error
        tree = ast.parse(source)
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        own = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
        own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        known = _names_known_to(thing)
        for name in dict.fromkeys(node.id for node in names):
            if name in known and name not in self._seen:
                self._add(name, known[name], thing.__name__, optional=name in own)
        self.definitions.append(source.rstrip())

    def _add(self, name: str, value: Any, user: str, optional: bool) -> None:
        """Make a name available; an optional one, which may be a local variable, only if that is possible."""
        if isinstance(value, ModuleType):
            self._seen.add(name)
            self.imports.append(f"import {value.__name__} as {name}")
        elif inspect.isfunction(value) or inspect.isclass(value):
            if value.__module__ == self.home:
                self.define(value)
            else:
                self.imports.append(f"from {value.__module__} import {value.__qualname__} as {name}")
                self._seen.add(name)
            if value.__module__ == self.home and value.__name__ != name:
                self._seen.add(name)
                self.definitions.append(f"{name} = {value.__name__}")
        elif _is_literal(value):
            self._seen.add(name)
            self.definitions.append(f"{name} = {value!r}")
        elif _is_importable(value):
            self._seen.add(name)
            self.imports.append(f"from {value.__module__} import {value.__name__} as {name}")
        elif not optional:
            raise UserError(
                f"'{user}' uses '{name}', {_kind(value)}, which cannot be copied into a file; define it "
                f"inside '{user}', or put the model into a Python file and set model to "
                "{name: file, path: FILE}"
            )


def _names_known_to(thing: Callable[..., Any]) -> Mapping[str, Any]:
    if inspect.isfunction(thing):
        closed = inspect.getclosurevars(thing).nonlocals
        return {**thing.__globals__, **closed}
    names = dict(vars(sys.modules[thing.__module__]))
    for function in vars(thing).values():
        if inspect.isfunction(function):
            names |= {key: value for key, value in _names_known_to(function).items() if key != "__class__"}
    return names


def _is_literal(value: Any) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError):
        return False


def _is_importable(value: Any) -> bool:
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    name = getattr(value, "__name__", None)
    return bool(module and name and module.__name__ != "__main__" and getattr(module, name, None) is value)


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
