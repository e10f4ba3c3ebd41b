"""All methods by name: the files of `methods/`, those of other packages, users' own, and wrappers."""

from __future__ import annotations

import hashlib
import inspect
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.errors import UserError, nearest
from bench.registry import Registry, source_files
from bench.user_code.methods import class_in_file, digest_of_source, snake_case
from bench.validation import validated

if TYPE_CHECKING:
    from methods.base import FedAlgorithm
    from methods.wrappers.base import Wrapper

AROUND = "+"
FILE = ".py"


def _method() -> type[FedAlgorithm]:
    from methods.base import FedAlgorithm

    return FedAlgorithm


def _wrapper() -> type[Wrapper]:
    from methods.wrappers.base import Wrapper

    return Wrapper


WRAPPERS: Registry[Wrapper] = Registry(
    "methods.wrappers", group="bench.wrappers", kind="wrapper", base=_wrapper
)


class Own(NamedTuple):
    """A method that only this process knows: from a user's file, a script or a notebook."""

    kind: type[FedAlgorithm]
    digest: str
    """Digest of its source, which another process may not have."""


class Methods(Registry["FedAlgorithm"]):
    """`scaffold` is a method, `ggeur+scaffold` the wrapper ggeur around it, `./mine.py` a user's file.

    A user's file goes by the name of the file (`mine`), a class from a notebook by its name in snake case.
    Both are known to this process alone, so they do not count among `names()`; `to_bytes` and `from_bytes`
    take them to another process.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._own: dict[str, Own] = {}

    def resolve(self, given: str | type[FedAlgorithm]) -> str:
        """The name by which `load` knows a method: of a name itself, of a file's path, or of a class."""
        if not isinstance(given, str):
            return self.register(given)
        wrapper, plus, inner = given.partition(AROUND)
        if plus and inner.endswith(FILE) and wrapper in WRAPPERS.names():
            return f"{wrapper}{AROUND}{self.resolve(inner)}"
        if not given.endswith(FILE):
            return given
        return self.register(class_in_file(Path(given).expanduser(), self._base()), Path(given).stem)

    def register(self, kind: type[FedAlgorithm], name: str | None = None) -> str:
        """Make a class known to this process and return its name; a class of the same name is replaced."""
        if not (inspect.isclass(kind) and issubclass(kind, self._base())):
            raise UserError(f"{kind!r} is not a method; give a subclass of {self._base().__name__}")
        if issubclass(kind, _wrapper()) and kind.model_fields["inner"].is_required():
            raise UserError(
                f"{kind.__name__} goes around another method and is not one itself; declare it among the "
                "entry points 'bench.wrappers' of a package"
            )
        if (known := self._name_of(kind)) is not None:
            return known
        name = name or snake_case(kind.__name__)
        if not name.isidentifier():
            raise UserError(f"'{name}' cannot name a method; use letters, digits and '_' only")
        if name in (*self.names(), *WRAPPERS.names()):
            raise UserError(
                f"the name '{name}' belongs to a method that is already there; choose another one"
            )
        self._own[name] = Own(kind, digest_of_source(kind))
        return name

    def is_own(self, name: str) -> bool:
        """Whether the method, or the one inside, comes from a user's file, script or notebook."""
        return self.inmost(name) in self._own

    def source_digest(self, name: str) -> str | None:
        """Digest of the user's source, part of a cell's identity; None for a method that is installed."""
        return self._own[self.inmost(name)].digest if self.is_own(name) else None

    def to_bytes(self, name: str) -> bytes:
        """The class of a method that only this process knows, by value; see `from_bytes`."""
        from ray import cloudpickle

        own_name = self.inmost(name)
        kind, digest = self._own[own_name]
        module = sys.modules[kind.__module__]
        # `__main__` goes by value anyway; the module of a file has to be named
        by_value = module.__name__ != "__main__"
        if by_value:
            cloudpickle.register_pickle_by_value(module)
        try:
            return bytes(cloudpickle.dumps((own_name, kind, digest)))
        finally:
            if by_value:
                cloudpickle.unregister_pickle_by_value(module)

    def from_bytes(self, data: bytes) -> str:
        """Make known here what `to_bytes` wrote in another process; returns the method's name."""
        from ray import cloudpickle

        name, kind, digest = cloudpickle.loads(data)
        self._own[name] = Own(kind, digest)
        return str(name)

    def load(self, name: str) -> type[FedAlgorithm]:
        name = self.resolve(name)
        wrapper, plus, inner = name.partition(AROUND)
        if plus:
            return _wrapped(wrapper, self.load(inner))
        if name in self._own:
            return self._own[name].kind
        if name in WRAPPERS.names():
            raise UserError(f"'{name}' goes around another method: write {name}{AROUND}fedavg, say")
        if name not in self.names():
            known = [*self.names(), *self._own, *(f"{wrapper}{AROUND}fedavg" for wrapper in WRAPPERS.names())]
            raise UserError(f"unknown method '{name}'; {nearest(name, known)}")
        return super().load(name)

    def _name_of(self, kind: type[FedAlgorithm]) -> str | None:
        """The name of a class that is installed."""
        name = kind.__module__.removeprefix(f"{self.package}.").removesuffix(".method")
        if self.ships(name) and super().load(name) is kind:
            return name
        place = f"{kind.__module__}:{kind.__qualname__}"
        return next((name for name, point in self._entry_points().items() if point.value == place), None)

    def inmost(self, name: str) -> str:
        """The method inside all wrappers."""
        return name.rpartition(AROUND)[2]


@cache
def _wrapped(wrapper: str, inner: type[FedAlgorithm]) -> type[FedAlgorithm]:
    return WRAPPERS.load(wrapper).around(inner)


def own_optimiser(name: str, settings: dict[str, Any]) -> dict[str, Any] | None:
    """The client optimiser that a method, or the one that it goes around, has of its own."""
    own = validated(METHODS.load(name), settings, f"method '{name}'").client_optimiser
    return None if own is None else own.model_dump(mode="json")


def code_digest(name: str) -> str:
    """Digest of the files of a method's class, of those it is derived from, and of what it goes around."""
    name = METHODS.resolve(name)
    *wrappers, inmost = name.split(AROUND)
    kinds = [*map(WRAPPERS.load, wrappers), METHODS.load(inmost)]
    classes = {each for kind in kinds for each in kind.__mro__ if issubclass(each, _method())} - {_method()}
    digest = hashlib.sha256()
    if own := METHODS.source_digest(name):
        digest.update(own.encode())
        # whose file another process may not have
        module = METHODS.load(METHODS.inmost(name)).__module__
        classes = {each for each in classes if each.__module__ != module}
    # in the order of the modules' names, which are the same wherever the files are
    for _, files in sorted({each.__module__: source_files(each) for each in classes}.items()):
        for file in files:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


METHODS = Methods("methods", group="bench.methods", kind="method", base=_method)
