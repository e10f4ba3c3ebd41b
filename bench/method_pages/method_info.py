"""What the source of a method says about it, for pages that are made without importing it."""

from __future__ import annotations

import inspect

from bench.method_pages.hyperparameters import hyperparameters_of
from bench.suite.methods import AROUND, METHODS, WRAPPERS
from reports.site import MethodInfo


def method_info(name: str) -> MethodInfo:
    """Label, docstring and hyperparameters; of a wrapper's method, the docstrings of both."""
    kind = METHODS.load(name)
    wrapper, plus, inner = name.partition(AROUND)
    sources: list[type] = [WRAPPERS.load(wrapper), METHODS.load(inner)] if plus else [kind]
    texts = [(inspect.getdoc(inspect.getmodule(source)) or "").strip() for source in sources]
    return MethodInfo(
        name=name,
        label=kind.label,
        summary=texts[0].partition("\n")[0],
        text="\n\n".join(texts),
        hyperparameters=hyperparameters_of(name, kind),
    )
