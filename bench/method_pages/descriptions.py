"""The methods and wrappers that ship, described for the documentation."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from bench.method_pages.examination import examined
from bench.method_pages.method_info import method_info
from bench.suite.loading import load_suite, suite_names
from bench.suite.methods import AROUND, METHODS, WRAPPERS
from methods.base import FedAlgorithm
from methods.fedavg import FedAvg
from reports.docs import Described, Examination
from reports.numbers.scores import BOUNDS, REFERENCE

SHIPPED = "methods."
INSIDE = "fedavg"
"""The method inside a wrapper whose page is made."""
PROTOTYPES = "Prototypes and anchors"
OF_CLASSES = {"centres", "means"}
"""Entries of a message with points of classes in the space of the features."""


def descriptions() -> Iterator[Described]:
    """All methods in the order of their names, then all wrappers, each around FedAvg."""
    suites = _suites_by_method()
    for name in METHODS.names():
        kind = METHODS.load(name)
        if kind.__module__.startswith(SHIPPED):
            found = examined(kind)
            yield Described(
                info=method_info(name),
                group=group_of(name, kind, found),
                source=_source(kind),
                space=f"search_spaces/{name}.yaml",
                neutral=_neutral(kind.neutral),
                examination=found,
                suites=suites.get(name, {}),
            )
    for name in WRAPPERS.names():
        wrapper = WRAPPERS.load(name)
        if wrapper.__module__.startswith(SHIPPED):
            around = f"{name}{AROUND}{INSIDE}"
            info = method_info(around)
            own = tuple(each for each in info.hyperparameters if each.name != "inner")
            text = (inspect.getdoc(inspect.getmodule(wrapper)) or "").strip()
            yield Described(
                info=replace(info, label=wrapper.short_label, text=text, hyperparameters=own),
                group="Wrappers",
                source=_source(wrapper),
                space=f"search_spaces/{name}.yaml",
                neutral=_neutral(wrapper.neutral, "the method inside"),
                examination=examined(METHODS.load(around)),
                suites=suites.get(name, {}),
                wrapper=True,
            )


def _source(kind: type[FedAlgorithm]) -> str:
    """Where its file is in the repository."""
    return f"{kind.__module__.replace('.', '/')}.py"


def group_of(name: str, kind: type[FedAlgorithm], found: Examination) -> str:
    """Under which heading a method stands, by what it needs, what it sends and what it changes."""
    if name in (REFERENCE, *BOUNDS):
        return "Baselines and bounds"
    if kind.own_model is not None:
        return "Prompts and adapters of a CLIP model"
    if all("LoRA" in about for about in found.accepted):
        return "LoRA branches on a frozen backbone"
    if kind.one_round:
        return "One round"
    if _overrides(kind, "anchored") or "prototypes" in found.rounds.down:
        return PROTOTYPES
    if not kind.has_global_model or "model" in found.private or _overrides(kind, "parameters"):
        return "Personalised models"
    if OF_CLASSES & {*found.rounds.down}:
        return PROTOTYPES
    if not (_overrides(kind, "local") or _overrides(kind, "objective") or _overrides(kind, "prelude")):
        return "Global model: the server's step"
    if kind.aggregate is FedAvg.aggregate:
        return "Global model: the clients' training"
    return "Global model: clients and server"


def _overrides(kind: type[FedAlgorithm], function: str) -> bool:
    return getattr(kind, function) is not getattr(FedAlgorithm, function)


def _neutral(neutral: Mapping[str, Any] | str, equal: str = "FedAvg") -> str:
    if isinstance(neutral, str):
        return f"Never equals {equal}: {neutral}."
    if not neutral:
        return f"Equals {equal} at its defaults, bit for bit."
    settings = ", ".join(f"`{key}: {_text(value)}`" for key, value in neutral.items())
    return f"Equals {equal} at {settings}, bit for bit."


def _text(value: Any) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _suites_by_method() -> dict[str, dict[str, tuple[str, ...]]]:
    """Method or wrapper → kind of partition → the shipped suites that compare it."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for suite in sorted(suite_names()):
        loaded = load_suite(suite)
        partition = str(loaded.partition["name"])
        for part in dict.fromkeys(part for entry in loaded.methods for part in entry.name.split(AROUND)):
            by_partition = found.setdefault(part, {})
            by_partition[partition] = (*by_partition.get(partition, ()), suite)
    return found
