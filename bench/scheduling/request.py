"""What requests for runs and for searches have in common: the suite, places and resources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.engine.conditions import Conditions
from bench.records.provenance import commit
from bench.scheduling import head
from bench.scheduling.joining import check_address
from bench.suite.loading import load_suite
from bench.suite.model import Suite
from bench.validation import above_zero, at_least, gpu_share

if TYPE_CHECKING:
    from bench.scheduling.resources import Resources


@dataclass(frozen=True)
class Request(ABC):
    """A suite, what is changed of it, and the resources to compute it with."""

    suite: str | Suite
    """A suite's name, the path of its file, or the suite itself."""
    rounds: int | None = None
    """Number of rounds; None: the suite's."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Other values at dotted keys, such as {"fedlsa.lam": 0.7, "training.epochs": 1}."""
    cpus_per_trial: float = 1
    gpus_per_trial: float | None = None
    """None: a whole GPU where there is one."""
    max_concurrent: int | None = None
    """Maximum number of concurrent trials; None: as many as fit."""
    address: str | None = None
    """HOST:PORT of a running Ray cluster, or "auto" for the one on this machine; None: Ray is started."""
    tracking_uri: str | None = None
    """MLflow tracking URI; None: SQLite in `out`."""
    checkpoint_every: float = 15
    """Seconds between the checkpoints of a cell."""
    data_root: Path | None = None
    out: Path = Path("runs")
    tuned_dir: Path = Path("tuned")

    def __post_init__(self) -> None:
        at_least(1, rounds=self.rounds, max_concurrent=self.max_concurrent)
        above_zero(cpus_per_trial=self.cpus_per_trial, checkpoint_every=self.checkpoint_every)
        gpu_share(self.gpus_per_trial)
        check_address(self.address)

    @property
    @abstractmethod
    def place(self) -> Path:
        """The folder below `out` in which everything of this suite is."""

    def begin_ray(self) -> None:
        """Start Ray on this machine beside what is done before it is needed; a cluster is there already."""
        if self.address is None:
            head.begin()

    def load_suite(self) -> Suite:
        return self.suite if isinstance(self.suite, Suite) else load_suite(self.suite)

    def settings(self) -> dict[str, Any]:
        """The keys of the suite that this request changes."""
        rounds = {"training.rounds": self.rounds} if self.rounds is not None else {}
        return dict(self.overrides) | rounds

    def conditions(self) -> Conditions:
        """How the cells are computed."""
        return Conditions(
            data_root=self.data_root.absolute() if self.data_root else None,
            checkpoint_seconds=self.checkpoint_every,
            commit=commit(),
        )

    def resources(self) -> Resources:
        """What a trial may use; imports Ray."""
        from bench.scheduling.resources import Resources

        return Resources(self.cpus_per_trial, self.gpus_per_trial, max_concurrent=self.max_concurrent)
