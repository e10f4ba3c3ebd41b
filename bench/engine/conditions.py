"""How a cell is computed; none of it changes the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from bench.config.cell import CellConfig
    from bench.engine.prepared_data import PreparedData


class DataSource(Protocol):
    """Has the data of cells for processes that cannot read them from their own disk."""

    def take_effect(self) -> None:
        """Let this process look for data where the driver does, if it runs on the same machine."""

    def prepared(self, config: CellConfig) -> PreparedData | None:
        """None where the data are on this machine's disk."""


@dataclass(frozen=True)
class Conditions:
    """Executor, share of the machine and places; not part of a cell's identity."""

    executor: str = "auto"
    hosts: int = 2
    """Host actors per trial, with the executor `ray`."""
    cpus: float = 1.0
    gpus: float = 0.0
    """What a trial, or each of its hosts, may use."""
    data_root: Path | None = None
    data: DataSource | None = None
    """Where processes on other machines than the driver's get the data; None: there are no such processes."""
    checkpoint_seconds: float = 15.0
    """Time between two checkpoints of a cell."""
    together: int = 1
    """Cells that one process may train as a stack, if they differ in hyperparameters and seed alone."""
    keep_model: bool = False
    """Whether a finished cell keeps the last state of server and clients."""
    commit: str = ""
    """The commit of the harness, for the record."""
    contract: Mapping[str, str] = field(default_factory=dict)
    """Method → its standing, for methods that have not passed `bench check`; for the record."""
    own_methods: tuple[bytes, ...] = ()
    """Methods from files, scripts or notebooks, by value: a worker cannot import them."""
    own_models: tuple[str, ...] = ()
    """Texts of the user's model files, for workers on nodes that do not have them."""

    @property
    def threads(self) -> int:
        return max(1, int(self.cpus))

    def take_effect(self) -> None:
        """Hold this process to its share of the machine, and make the user's own methods known to it."""
        import torch

        from bench.engine.process import use_share
        from bench.suite.methods import METHODS
        from bench.user_code.models import keep_source

        use_share(self.threads)
        if self.data is not None:
            self.data.take_effect()
        if self.gpus and torch.cuda.is_available():
            torch.cuda.set_per_process_memory_fraction(min(1.0, self.gpus))
        for method in self.own_methods:
            METHODS.from_bytes(method)
        for text in self.own_models:
            keep_source(text)
