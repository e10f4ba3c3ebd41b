"""What one trial may use, and how many trials fit on which node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ray import tune

from bench.text import counted

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Resources:
    """What one trial may use."""

    cpus: float = 1
    gpus: float | None = 0
    """None: a whole GPU where the cluster has any, else none."""
    hosts: int = 0
    """Host actors beside the trial itself; each has the trial's share, and the trial's own is then idle."""
    max_concurrent: int | None = None

    def request(self) -> tune.PlacementGroupFactory:
        share: dict[str, int | float] = {"CPU": self.cpus, **({"GPU": self.gpus} if self.gpus else {})}
        bundles = [{"CPU": 1.0}, *[share] * self.hosts] if self.hosts else [share]
        return tune.PlacementGroupFactory(bundles)

    def per_node(self, nodes: Sequence[Mapping[str, float]]) -> list[int]:
        """How many trials have room on each of these nodes; one over several nodes counts for its first."""
        rooms = [_Room(node) for node in nodes]
        bundles = self.request().bundles
        found = [0] * len(nodes)
        # Ray puts a trial on one node if it fits there, and else spreads its hosts.
        for number, room in enumerate(rooms):
            while room.takes(bundles):
                found[number] += 1
        while len(bundles) > 1 and (first := _spread(bundles, rooms)) is not None:
            found[first] += 1
        return found

    def at_once(self, nodes: Sequence[Mapping[str, float]]) -> int:
        """How many trials these nodes have room for."""
        room = sum(self.per_node(nodes))
        return min(room, self.max_concurrent) if self.max_concurrent else room

    def in_words(self, nodes: Sequence[Mapping[str, float]]) -> str:
        """What a trial has, and how many run at once, in all and per node."""
        per_node = self.per_node(nodes)
        gpus = f", {self.gpus:g} GPU" if self.gpus else ""
        cards = sum(node.get("GPU", 0) for node in nodes)
        why = f"Ray has {sum(node.get('CPU', 0) for node in nodes):g} CPU"
        why += f" and {cards:g} GPU" if cards else ""
        if len(nodes) > 1:
            why += f": room for {_shares(per_node)}"
        if self.at_once(nodes) < sum(per_node):
            why = "--max-concurrent"
        return f"resources: {self.cpus:g} CPU{gpus} per trial; {self.at_once(nodes)} at once ({why})"


class _Room:
    """What is free on a node; a share of a GPU comes from one card."""

    def __init__(self, node: Mapping[str, float]) -> None:
        self._cpus = node.get("CPU", 0.0)
        self._cards = [1.0] * int(node.get("GPU", 0))

    def takes(self, bundles: Sequence[Mapping[str, Any]]) -> bool:
        """Whether all of these fit; if so, their room is taken."""
        before = self._cpus, list(self._cards)
        if all(self._take(bundle) for bundle in bundles):
            return True
        self._cpus, self._cards = before
        return False

    def _take(self, bundle: Mapping[str, Any]) -> bool:
        cpus, gpus = bundle.get("CPU", 0.0), bundle.get("GPU", 0.0)
        fitting = [card for card, free in enumerate(self._cards) if free + _ROUNDING >= min(gpus, 1.0)]
        wanted = 0 if not gpus else max(1, int(gpus))
        if self._cpus + _ROUNDING < cpus or len(fitting) < wanted:
            return False
        self._cpus -= cpus
        # The fullest card first, so that whole ones stay for those who need them.
        for card in sorted(fitting, key=lambda each: self._cards[each])[:wanted]:
            self._cards[card] -= min(gpus, 1.0)
        return True


def _spread(bundles: Sequence[Mapping[str, Any]], rooms: Sequence[_Room]) -> int | None:
    """Give each bundle room on some node, and return that of the first; None if there is not enough."""
    places = []
    for bundle in bundles:
        place = next((number for number, room in enumerate(rooms) if room.takes([bundle])), None)
        if place is None:
            return None  # what was taken is not given back: nobody asks again
        places.append(place)
    return places[0]


def _shares(per_node: Sequence[int]) -> str:
    """How many trials run where, such as "1 on each of 2 nodes"."""
    parts = [
        f"{trials} on each of {nodes} nodes" if nodes > 1 else f"{trials} on one node"
        for trials, nodes in sorted(Counter(per_node).items(), reverse=True)
    ]
    return ", ".join(parts)


def nodes_in_words(nodes: Sequence[Mapping[str, float]], names: Sequence[str]) -> str:
    """What these nodes have of each resource, such as "2 nodes with 1 CPU"; for one node "1 CPU"."""
    have = Counter(", ".join(f"{node.get(name, 0):g} {name}" for name in names) for node in nodes)
    if len(nodes) == 1:
        return next(iter(have))
    return " and ".join(f"{counted(count, 'node')} with {what}" for what, count in have.items())
