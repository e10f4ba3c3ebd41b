"""The terms of a client's loss, noted while it trains, for the record of the round."""

from __future__ import annotations

import torch
from torch import Tensor


class LossTerms:
    """The mean of every noted term over the steps of one client's round.

    It lives for one call of `local`, inside `vmap` where clients are stacked: then all it holds is of one
    client, and `means` is among the results of the stacked function.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._counts: dict[str, int | Tensor] = {}

    def note(self, name: str, value: Tensor, live: Tensor | None) -> None:
        """Count a value of this term, unless the step is only padding."""
        value = value.detach()
        if live is not None:
            value = torch.where(live, value, torch.zeros_like(value))
        self._sums[name] = self._sums[name] + value if name in self._sums else value
        self._counts[name] = self._counts.get(name, 0) + (1 if live is None else live.long())

    def means(self) -> dict[str, Tensor]:
        """Term → its mean; 0 where no step was real."""
        counts = {name: torch.as_tensor(count).clamp(min=1) for name, count in self._counts.items()}
        return {name: total / counts[name] for name, total in self._sums.items()}
