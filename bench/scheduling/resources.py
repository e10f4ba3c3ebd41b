"""What one trial may use, and how many trials fit."""

from __future__ import annotations

from dataclasses import dataclass

from ray import tune


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

    def at_once(self, cluster: dict[str, float]) -> int:
        """How many trials the cluster has room for."""
        needed = self.request().required_resources
        room = min(int(cluster.get(name, 0) / amount + 1e-9) for name, amount in needed.items() if amount)
        return min(room, self.max_concurrent) if self.max_concurrent else room
