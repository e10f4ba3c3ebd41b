"""What a user may ask of a command, declared once for the command line and for Python.

A request is a frozen dataclass. The annotation of a field has its type and its help text, and the field its
default:

    @dataclass(frozen=True, kw_only=True)
    class RunRequest(Request):
        rounds: Annotated[int | None, Option("Number of rounds; default: the suite's.")] = None

`bench/cli/request_options.py` makes the options of a command from it, `made` a request from the keywords of a
function. The help of a command needs these classes and nothing else, so their modules import nothing that
takes long: types that only Python callers use are written in quotes. The modules have no `from __future__
import annotations`, which would turn all annotations into text.
"""

import dataclasses
import inspect
import math
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from bench.errors import UserError, nearest

R = TypeVar("R", bound="Request")
REQUIRED = dataclasses.MISSING


@dataclass(frozen=True)
class Option:
    """What the annotation of a field says about it."""

    help: str


DataRoot: TypeAlias = Annotated[Path | None, Option("Folder of the datasets.")]
RunsFolder: TypeAlias = Annotated[Path, Option("Folder of the runs.")]
TunedFolder: TypeAlias = Annotated[Path, Option("Folder of the tuned hyperparameters.")]


@dataclass(frozen=True)
class Declared:
    """A field of a request."""

    name: str
    kind: Any
    """Its type, without None where it may be None."""
    default: Any
    """REQUIRED: it has none."""
    help: str

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that there are, where these are names; otherwise empty."""
        return typing.get_args(self.kind) if typing.get_origin(self.kind) is Literal else ()


@dataclass(frozen=True)
class Request:
    """The base of all requests: refuses names that are not among those of a field's type."""

    def __post_init__(self) -> None:
        for field in declared(type(self)):
            value = getattr(self, field.name)
            if field.choices and value not in field.choices:
                raise UserError(f"unknown {flag(field.name)} '{value}'; {nearest(str(value), field.choices)}")


def declared(request: type[Request]) -> Iterator[Declared]:
    """The fields of a request as users see them: what is required, its own, then those of its bases."""
    own = [name for kind in request.__mro__ for name in inspect.get_annotations(kind)]
    fields = {field.name: field for field in dataclasses.fields(request)}
    for name in sorted(dict.fromkeys(own), key=lambda name: not _is_required(fields[name])):
        kind, option = typing.get_args(fields[name].type)
        yield Declared(name, _without_none(kind), _default(fields[name]), option.help)


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return _default(field) is REQUIRED


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _without_none(kind: Any) -> Any:
    if typing.get_origin(kind) not in (types.UnionType, typing.Union):
        return kind
    left = [member for member in typing.get_args(kind) if member is not type(None)]
    return left[0] if len(left) == 1 else typing.Union[tuple(left)]  # noqa: UP007


def made(request: type[R], values: Mapping[str, Any], caller: str) -> R:
    """The request with these values, for a function whose keywords they are; texts may stand for paths."""
    fields = {field.name: field for field in declared(request)}
    for name in values:
        if name not in fields:
            raise UserError(f"{caller} has no option '{name}'; {nearest(name, fields)}")
    as_paths = {name for name, value in values.items() if fields[name].kind is Path and value is not None}
    return request(**{name: Path(value) if name in as_paths else value for name, value in values.items()})


def shared(source: Request, target: type[Request]) -> dict[str, Any]:
    """The values of the fields that both requests have."""
    names = {field.name for field in dataclasses.fields(target)}
    return {
        field.name: getattr(source, field.name) for field in dataclasses.fields(source) if field.name in names
    }


def flag(name: str) -> str:
    """`max_concurrent` → `--max-concurrent`."""
    return "--" + name.replace("_", "-")


def at_least(least: int, **options: int | None) -> None:
    """Refuse an option below this number; None is not checked."""
    for name, value in options.items():
        if value is not None and value < least:
            raise UserError(f"{flag(name)} {value}: must be at least {least}")


def above_zero(**options: float | None) -> None:
    """Refuse an option that is zero, negative or infinite; None is not checked."""
    for name, value in options.items():
        if value is not None and not 0 < value < math.inf:
            raise UserError(f"{flag(name)} {value:g}: must be a number greater than 0")


def gpu_share(share: float | None) -> None:
    """Refuse what Ray cannot give a trial of GPUs: above one, whole numbers only."""
    if share is None:
        return
    if not 0 <= share < math.inf:
        raise UserError(f"--gpus-per-trial {share:g}: must be a number and not negative")
    if share > 1 and share != int(share):
        raise UserError(f"--gpus-per-trial {share:g}: above 1 only whole GPUs can be given")
