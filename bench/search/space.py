"""The search space of a method: its keys, the distribution of each, and the suite's own values."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bench.config.cell import CellConfig, identity
from bench.errors import UserError, nearest
from bench.suite.methods import own_optimiser
from search_spaces.model import Distribution
from search_spaces.spaces import load_space, note_on_derivation

DIGITS = 4
"""Significant digits of a drawn number: readable in a file, and precise enough."""

Values = dict[str, Any]
"""Dotted keys of a method's settings → values, such as `lam` and `optimiser.lr`."""


@dataclass(frozen=True)
class SearchSpace:
    name: str
    """`paper` or `wide`."""
    domains: Mapping[str, Distribution]
    default: Values
    """The suite's own values of the same keys."""
    kept: Sequence[str] = ()
    """Keys of the method's space that are not searched, so they keep the suite's own value."""
    note: str = ""
    """Where the space comes from, if not from a file."""

    @property
    def size(self) -> int | None:
        """The number of configurations; None if infinite."""
        options = [_options(domain) for domain in self.domains.values()]
        return None if None in options else math.prod(len(values) for values in options if values)

    @property
    def digest(self) -> str:
        return identity({key: domain.model_dump(mode="json") for key, domain in self.domains.items()})

    def draw(self, random: np.random.Generator) -> Values:
        return {key: _draw(domain, random) for key, domain in self.domains.items()}

    def point(self, index: int) -> Values:
        """One of the `size` configurations."""
        values = {}
        for key, domain in reversed(list(self.domains.items())):
            options = _options(domain)
            assert options is not None
            index, position = divmod(index, len(options))
            values[key] = options[position]
        return {key: values[key] for key in self.domains}

    def covers(self, values: Values) -> bool:
        return all(domain.covers(values[key]) for key, domain in self.domains.items())

    def limited_to(self, keys: Collection[str]) -> SearchSpace:
        """The space of these keys only."""
        domains = {key: domain for key, domain in self.domains.items() if key in keys}
        return replace(self, domains=domains, default={key: self.default[key] for key in domains})

    def corners(self) -> Iterator[Values]:
        """The ends of every range and all choices, one key at a time."""
        for key, domain in self.domains.items():
            yield from ({key: value} for value in domain.values)


def search_space(
    method: str, name: str, default_config: CellConfig, sweeps: Mapping[str, Sequence[Any]]
) -> SearchSpace:
    """The method's space of this name; a sweep replaces the distribution of a key.

    A key with a single value keeps the suite's own one, and so does a key for which the paper prints none.
    """
    space = load_space(method)
    for key in space.training:
        if not key.startswith("optimiser."):
            raise UserError(
                f"search space {method}.yaml: training.{key} is the same for all methods of a table and "
                "cannot be chosen for one; only keys of training.optimiser can"
            )
    offered = {
        key: parameter.wide if name == "wide" else _choice(parameter.paper) if parameter.paper else None
        for key, parameter in {**space.hyperparameters, **space.training}.items()
        if parameter.matters(default_config.partition.name)
    }
    offered |= {key: _choice(values) for key, values in sweeps.items()}
    domains = {key: domain for key, domain in offered.items() if domain and len(domain.values) > 1}
    settings = dict(default_config.method.hyperparameters)
    settings["optimiser"] = own_optimiser(method, settings) or default_config.training.optimiser
    return SearchSpace(
        name,
        domains,
        default={key: _at(settings, key, method) for key in domains},
        kept=tuple(key for key in offered if key not in domains),
        note=note_on_derivation(method),
    )


def describe(space: SearchSpace) -> str:
    """The space in words, such as `lam 0.001–1 log, tau 0.1/0.2; optimiser.lr as in the suite`."""
    parts = [f"{key} {describe_distribution(each)}" for key, each in space.domains.items()]
    nothing = "nothing to choose" + (": the paper prints no grid" if space.name == "paper" else "")
    kept = f"{', '.join(space.kept)} as in the suite" if space.kept else ""
    return "; ".join(filter(None, [", ".join(parts) or nothing, kept, space.note]))


def describe_distribution(distribution: Distribution) -> str:
    """`0.001–1 log` for a range, `0.1/0.2` for choices."""
    ends = [str(value) for value in distribution.values]
    if distribution.kind == "choice":
        return "/".join(ends)
    return "–".join(ends) + (" log" if distribution.kind == "log_uniform" else "")


def _options(domain: Distribution) -> Sequence[Any] | None:
    """All values; None if there are infinitely many."""
    if domain.kind == "choice":
        return domain.values
    return range(domain.values[0], domain.values[1] + 1) if domain.kind == "int" else None


def _choice(values: Sequence[Any]) -> Distribution:
    return Distribution.model_validate({"choice": list(values)})


def _draw(domain: Distribution, random: np.random.Generator) -> Any:
    if domain.kind == "choice":
        return domain.values[int(random.integers(len(domain.values)))]
    low, high = domain.values
    if domain.kind == "int":
        return int(random.integers(low, high + 1))
    if domain.kind == "log_uniform":
        return rounded(math.exp(random.uniform(math.log(low), math.log(high))), domain)
    return rounded(random.uniform(low, high), domain)


def rounded(value: float, domain: Distribution) -> float:
    low, high = domain.values
    return float(min(max(float(f"{value:.{DIGITS}g}"), low), high))


def _at(settings: Any, key: str, method: str) -> Any:
    for part in key.split("."):
        if not isinstance(settings, Mapping) or part not in settings:
            known = settings if isinstance(settings, Mapping) else ()
            raise UserError(f"method '{method}': unknown key '{key}'; {nearest(part, known)}")
        settings = settings[part]
    return settings
