"""What a user asks of `bench run`, from the command line or from Python."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from bench.errors import UserError
from bench.request import Option, at_least
from bench.runs.shard import parse_shard
from bench.trials.request import ComputingRequest, SuiteRequest

if TYPE_CHECKING:
    from bench.cluster.resources import Resources
    from bench.suite.model import MethodEntry

BOTH: Final = "both"
SHARED: Final = "shared"
EVERY: Final = "all"


@dataclass(frozen=True, kw_only=True)
class CellOptions(ComputingRequest):
    """How the cells of a run are computed, and what they leave behind."""

    executor: Annotated[
        Literal["auto", "loop", "stacked", "ray", "debug"], Option("How the clients of a cell are computed.")
    ] = "auto"
    hosts: Annotated[
        int | None, Option("Host actors per trial with --executor ray; default: 2, or 1 on two cores.")
    ] = None
    keep_model: Annotated[bool, Option("Keep the final model of each cell, for `bench export`.")] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, hosts=self.hosts)

    def resources(self) -> "Resources":
        return replace(super().resources(), hosts=self.hosts_per_trial if self.executor == "ray" else 0)

    @property
    def hosts_per_trial(self) -> int:
        """A trial needs a core besides those of its hosts; how many a cluster has is not known here."""
        few_cores = self.address is None and (os.cpu_count() or 1) <= 2
        return self.hosts or (1 if few_cores else 2)


@dataclass(frozen=True, kw_only=True)
class RunRequest(SuiteRequest, CellOptions):
    """A suite to run, and which of its rows, cells and values."""

    methods: Annotated["Sequence[str | MethodEntry] | None", Option("Only these methods: a,b,c.")] = None
    seeds: Annotated[int | None, Option("Number of seeds; default: the suite's.")] = None
    encoder: Annotated[
        str | None, Option("Frozen encoder of the pictures or texts: see `bench list encoders`.")
    ] = None
    tuned: Annotated[
        bool | Literal["both", "shared", "all"],
        Option(
            "Use the values chosen by `bench tune` (--tuned), by `bench tune --shared` (--tuned shared), the "
            "former and the defaults (--tuned both), or all three (--tuned all)."
        ),
    ] = False
    shard: Annotated[
        str | None, Option("Run only part I of N of the cells; for job arrays over one folder.")
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, seeds=self.seeds)
        if self.tuned not in (True, False, BOTH, SHARED, EVERY):
            raise UserError(
                f"--tuned {self.tuned}: write --tuned alone, or --tuned {BOTH}, {SHARED} or {EVERY}"
            )
        if self.shard is not None:
            parse_shard(self.shard)
        if self.methods is not None and not self.methods:
            raise UserError("--methods is empty; give names separated by commas, such as fedavg,fedlsa")

    def settings(self) -> dict[str, Any]:
        encoder = {"encoder": self.encoder} if self.encoder is not None else {}
        return super().settings() | encoder
