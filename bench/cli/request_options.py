"""The options of a command, made from the fields of its request: names, types, defaults and help texts.

    @command_of(RunRequest)
    def run(request: RunRequest, dry_run: options.DryRun = False) -> int:
        \"""Run what is missing of a suite, then make its tables.\"""

What a field is called on the command line and how its text is read follows from its type; `SPELLINGS` has the
few fields that are written in another way. Parameters after the request are options of the command line only.
`command_line` is the way back, from a request to the text of a command.
"""

from __future__ import annotations

import inspect
import math
import os
import shlex
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from bench.request import REQUIRED, Declared, Request, declared, flag

R = TypeVar("R", bound=Request)
ROOT_VARIABLE = "BENCH_DATA_ROOT"
TUNED_ALONE = "yes"
"""What `--tuned` without a value stands for."""


def names(text: str) -> Sequence[str]:
    """The names in a list separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def assignments(texts: Sequence[str]) -> Mapping[str, Any]:
    """`--set` as often as it was given."""
    from bench.suite.overrides import parse_assignment

    return dict(map(parse_assignment, texts))


def sweeps(texts: Sequence[str]) -> Mapping[str, Sequence[Any]]:
    """`--sweep` as often as it was given."""
    from bench.suite.sweeps import parse_sweep

    return dict(map(parse_sweep, texts))


def tuned(text: str) -> Any:
    """`--tuned`, or `--tuned both`."""
    return True if text == TUNED_ALONE else text


def count_or_auto(text: str) -> Any:
    """A number, or the word auto; another word is left to the request to refuse."""
    return int(text) if text.lstrip("-").isdecimal() else text


@dataclass(frozen=True)
class Spelling:
    """How a field is written on the command line."""

    flags: tuple[str, ...] = ()
    """Empty: one that is named after the field."""
    kind: Any = str
    """The type that the command line reads."""
    parse: Callable[[Any], Any] = lambda value: value
    """From that type to the field's."""
    metavar: str | None = None
    envvar: str | None = None
    positional: bool = False
    """Whether it stands without a flag."""


LISTED = Spelling(parse=names)
"""Names separated by commas."""
COUNT_OR_AUTO = Spelling(parse=count_or_auto, metavar="N|auto")
SPELLINGS = {
    "root": Spelling(("--runs",), Path),
    "formats": replace(LISTED, flags=("--format",)),
    "suites": replace(LISTED, flags=("--suite",)),
    "methods": LISTED,
    "overrides": Spelling(("--set",), list[str], assignments, metavar="KEY=VALUE"),
    "sweeps": Spelling(("--sweep",), list[str], sweeps, metavar="KEY=VALUES"),
    "tuned": Spelling(parse=tuned, metavar="[both|shared|all]"),
    "shard": Spelling(metavar="I/N"),
    "search_seeds": COUNT_OR_AUTO,
    "data_root": Spelling(kind=Path, envvar=ROOT_VARIABLE),
}
"""By the name of the field."""


def command_of(
    request: type[R], positional: Collection[str] = (), **spellings: Spelling
) -> Callable[[Callable[..., int | None]], Callable[..., None]]:
    """Make a command of a function that takes the request and returns the exit code; None stands for 0.

    `positional` names the fields that stand without a flag; `spellings` go before those of this module.
    """
    fields = {field.name: field for field in declared(request)}
    spelt = {name: spellings.get(name) or _spelling(field) for name, field in fields.items()}
    spelt |= {name: _positional(spelt[name]) for name in positional}
    parameters = [_parameter(field, spelt[name]) for name, field in fields.items()]

    def decorated(function: Callable[..., int | None]) -> Callable[..., None]:
        _, *own = inspect.signature(function, eval_str=True).parameters.values()

        def command(**given: Any) -> None:
            values = {
                name: spelt[name].parse(value)
                for name, value in given.items()
                if name in fields and value is not None
            }
            rest = {parameter.name: given[parameter.name] for parameter in own}
            raise typer.Exit(function(request(**values), **rest) or 0)

        command.__name__, command.__doc__ = function.__name__, function.__doc__
        command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [*parameters, *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own)]
        )
        return command

    return decorated


def _spelling(field: Declared) -> Spelling:
    """How a field of this name or else of this type is written."""
    if field.name in SPELLINGS:
        return SPELLINGS[field.name]
    if field.choices or isinstance(
        field.kind, typing.ForwardRef
    ):  # a text stands for what Python callers may give instead
        return Spelling()
    if typing.get_origin(field.kind) is not None:
        return LISTED
    return Spelling(kind=field.kind)


def _positional(spelling: Spelling) -> Spelling:
    """Without a flag, the items of a list are given one by one."""
    if spelling.parse is names:
        spelling = replace(spelling, kind=list[str], parse=list)
    return replace(spelling, positional=True)


def _parameter(field: Declared, spelling: Spelling) -> inspect.Parameter:
    """What Typer makes an option or an argument of."""
    choices = f" One of: {', '.join(field.choices)}." if field.choices else ""
    text = f"{field.help}{choices}"
    settings: dict[str, Any] = {"help": text, "metavar": spelling.metavar, "envvar": spelling.envvar}
    kind = spelling.kind
    if spelling.positional:
        about: Any = typer.Argument(**settings)
    else:
        about = typer.Option(*(spelling.flags or (flag(field.name),)), **settings)
    default = _shown(field.default, kind)
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if field.default is REQUIRED else default,
        annotation=Annotated[kind | None if default is None else kind, about],
    )


def _shown(default: Any, kind: Any) -> Any:
    """The default as the command line writes it; None: an option that is not given is left to the request."""
    if isinstance(default, tuple):
        return ",".join(default)
    if isinstance(default, bool) and kind is not bool:
        return None
    return default if isinstance(default, str | int | float | Path) else None


def command_line(command: str, request: Request) -> str:
    """The command that makes this request, as one types it in a shell; what is the default is left out."""
    words = ["bench", command]
    for field in declared(type(request)):
        value = getattr(request, field.name)
        spelling = _spelling(field)
        if value is None or _same(value, field.default) or _is_in_environment(value, spelling):
            continue
        option = spelling.flags[0] if spelling.flags else flag(field.name)
        if isinstance(value, Mapping):
            words += [word for key, item in value.items() for word in (option, f"{key}={_text(item)}")]
        elif value is True:
            words.append(option)
        else:
            words += [option, ",".join(value) if isinstance(value, list | tuple) else str(value)]
    return shlex.join(words)


def _same(value: Any, default: Any) -> bool:
    listed = isinstance(value, list | tuple) and isinstance(default, list | tuple)
    return list(value) == list(default) if listed else bool(value == default)


def _is_in_environment(value: Any, spelling: Spelling) -> bool:
    return spelling.envvar is not None and str(value) == os.environ.get(spelling.envvar)


def _text(value: Any) -> str:
    """A value after `KEY=`, as YAML in one line; those of a sweep are separated by commas."""
    import yaml

    text = yaml.safe_dump(value, default_flow_style=True, width=math.inf, allow_unicode=True)
    text = text.removesuffix("...\n").strip()
    return text[1:-1] if isinstance(value, list | tuple) else text
