"""All methods by name: the files of `methods/`, those of other packages, and wrappers around them."""

from __future__ import annotations

import hashlib
import inspect
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import UserError, nearest
from bench.registry import Registry
from bench.validation import validated

if TYPE_CHECKING:
    from methods.base import FedAlgorithm
    from methods.wrappers.base import Wrapper

AROUND = "+"


def _method() -> type[FedAlgorithm]:
    from methods.base import FedAlgorithm

    return FedAlgorithm


def _wrapper() -> type[Wrapper]:
    from methods.wrappers.base import Wrapper

    return Wrapper


WRAPPERS: Registry[Wrapper] = Registry(
    "methods.wrappers", group="bench.wrappers", kind="wrapper", base=_wrapper
)


class Methods(Registry["FedAlgorithm"]):
    """`scaffold` is a method, `ggeur+scaffold` the wrapper ggeur around it."""

    def load(self, name: str) -> type[FedAlgorithm]:
        wrapper, plus, inner = name.partition(AROUND)
        if plus:
            return _wrapped(wrapper, inner)
        if name in WRAPPERS.names():
            raise UserError(f"'{name}' goes around another method: write {name}{AROUND}fedavg, say")
        if name not in self.names():
            known = [*self.names(), *(f"{wrapper}{AROUND}fedavg" for wrapper in WRAPPERS.names())]
            raise UserError(f"unknown method '{name}'; {nearest(name, known)}")
        return super().load(name)


@cache
def _wrapped(wrapper: str, inner: str) -> type[FedAlgorithm]:
    return WRAPPERS.load(wrapper).around(METHODS.load(inner))


def own_optimiser(name: str, settings: dict[str, Any]) -> dict[str, Any] | None:
    """The client optimiser that a method, or the one that it goes around, has of its own."""
    own = validated(METHODS.load(name), settings, f"method '{name}'").client_optimiser
    return None if own is None else own.model_dump(mode="json")


def code_digest(name: str) -> str:
    """Of the files of a method's class, of those it is derived from, and of what it goes around."""
    wrapper, plus, inner = name.partition(AROUND)
    kinds = [WRAPPERS.load(wrapper), METHODS.load(inner)] if plus else [METHODS.load(name)]
    classes = {each for kind in kinds for each in kind.__mro__ if issubclass(each, _method())} - {_method()}
    digest = hashlib.sha256()
    # in the order of the modules' names, which are the same wherever the files are
    for _, file in sorted({(each.__module__, inspect.getfile(each)) for each in classes}):
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()[:16]


METHODS = Methods("methods", group="bench.methods", kind="method", base=_method)
