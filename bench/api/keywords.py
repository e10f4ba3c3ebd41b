"""Functions whose keywords are the fields of a request, with a signature and a docstring that say so."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from bench.request import Declared, Request, declared

F = TypeVar("F", bound=Callable[..., Any])


def takes_fields_of(request: type[Request]) -> Callable[[F], F]:
    """Show the fields of the request in the function's help in place of its `**options`."""

    def decorated(function: F) -> F:
        own = {
            name: parameter
            for name, parameter in inspect.signature(function).parameters.items()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        }
        fields = [field for field in declared(request) if field.name not in own]
        parameters = [*own.values(), *map(_parameter, fields)]
        function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            parameters, return_annotation=inspect.signature(function).return_annotation
        )
        function.__doc__ = (
            inspect.cleandoc(function.__doc__ or "") + "\n\nOptions:\n" + "\n".join(_lines(fields))
        )
        return function

    return decorated


def _parameter(field: Declared) -> inspect.Parameter:
    kind = field.kind if field.default is not None else field.kind | None
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=_plain(field.default), annotation=kind
    )


def _lines(fields: list[Declared]) -> Iterator[str]:
    for field in fields:
        choices = f" ({', '.join(field.choices)})" if field.choices else ""
        yield f"    {field.name} = {_plain(field.default)!r}{choices}: {field.help}"


def _plain(default: Any) -> Any:
    return str(default) if isinstance(default, Path) else default
