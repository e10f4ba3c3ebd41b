"""What a page of the documentation says about a method beside its source and its results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reports.site import MethodInfo


@dataclass(frozen=True)
class Traffic:
    """The entries of the messages of an exchange, by name."""

    down: tuple[str, ...] = ()
    up: tuple[str, ...] = ()


@dataclass(frozen=True)
class Examination:
    """What short runs on small models show about a method."""

    accepted: tuple[str, ...]
    """Kinds of models that it runs on."""
    refused: Mapping[str, tuple[str, ...]]
    """The method's sentence → the kinds of models and optimisers that it is about."""
    before: Traffic
    """Before round 1."""
    rounds: Traffic
    private: tuple[str, ...]
    """What a client keeps to itself."""


@dataclass(frozen=True)
class Described:
    """A method or a wrapper as its page shows it."""

    info: MethodInfo
    group: str
    """The heading of the index under which it stands."""
    source: str
    """Its file, from the root of the repository."""
    space: str
    """The file of its search space, likewise."""
    neutral: str
    """Where it equals FedAvg, or why it does nowhere."""
    examination: Examination
    suites: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Kind of partition → the shipped suites that compare it under one of that kind."""
    wrapper: bool = False

    @property
    def name(self) -> str:
        """The name of its file and of its page."""
        return self.info.name.partition("+")[0]
