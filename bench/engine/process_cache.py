"""What a process keeps from one cell for the next: data, model, and exchanges before the first round."""

from __future__ import annotations

from collections.abc import Iterable

from bench.config.cell import CellConfig
from bench.engine.assembly import Assembled, assemble_under, assembled_like, pools_data
from bench.engine.conditions import Conditions
from bench.engine.shared_preludes import SharedPreludes


class ProcessCache:
    """For cells that differ in nothing but their method."""

    def __init__(self) -> None:
        self._assembled: dict[tuple[str, bool], Assembled] = {}
        self.preludes = SharedPreludes()

    def assembled(self, config: CellConfig, conditions: Conditions) -> Assembled:
        """The problem of a cell, with data and model of another cell where these are the same."""
        key = _key(config)
        if key in self._assembled:
            return assembled_like(config, self._assembled[key])
        self._assembled[key] = assemble_under(conditions, config)
        return self._assembled[key]

    def keep_for(self, configs: Iterable[CellConfig]) -> None:
        """Let go of what none of these cells has a use for: there may not be room for the data of two."""
        wanted = set(map(_key, configs))
        if wanted != self._assembled.keys():
            self.preludes.forget()
        self._assembled = {key: each for key, each in self._assembled.items() if key in wanted}


def _key(config: CellConfig) -> tuple[str, bool]:
    """Equal for cells whose clients have the same samples and begin with the same model."""
    return config.without_method, pools_data(config)
