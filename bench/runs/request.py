"""What a user asks of `bench run`, from the command line or from Python."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from bench.engine.conditions import Conditions
from bench.errors import UserError
from bench.runs.plan import Plan, make_plan
from bench.runs.shard import parse_shard
from bench.scheduling.request import Request
from bench.suite.methods import METHODS
from bench.suite.model import MethodEntry
from bench.validation import at_least

if TYPE_CHECKING:
    from bench.scheduling.resources import Resources


BOTH: Final = "both"


@dataclass(frozen=True)
class RunRequest(Request):
    """A suite to run, with the methods, seeds and executor to run it with."""

    methods: Sequence[str | MethodEntry] | None = None
    """Only these methods: names, paths of files, or rows of their own; None: those of the suite."""
    seeds: int | None = None
    encoder: str | None = None
    tuned: bool | Literal["both"] = False
    """Use the hyperparameters that `bench tune` has chosen; "both": and show the defaults beside them."""
    executor: str = "auto"
    hosts: int | None = None
    """Host actors per trial with the executor `ray`; None: 2, or 1 on two cores."""

    keep_model: bool = False
    """Keep the last state of server and clients of every cell, for `bench export`."""
    shard: str | None = None
    """Run only this part of the cells, such as "3/8"; the other parts are left to other processes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, seeds=self.seeds, hosts=self.hosts)
        if self.tuned not in (True, False, BOTH):
            raise UserError(f"--tuned {self.tuned}: give --tuned alone, or --tuned both")
        if self.shard is not None:
            parse_shard(self.shard)
        if self.methods is not None and not self.methods:
            raise UserError("--methods is empty; give names separated by commas, such as fedavg,fedlsa")

    @property
    def place(self) -> Path:
        return self.out / self.load_suite().suite

    def settings(self) -> dict[str, Any]:
        encoder = {"encoder": self.encoder} if self.encoder is not None else {}
        return super().settings() | encoder

    def plan(self) -> Plan:
        """The cells of the suite as asked for."""
        return replace(self._whole_plan(), shard=parse_shard(self.shard) if self.shard is not None else None)

    def _whole_plan(self) -> Plan:
        suite = self.load_suite().resolved(METHODS.resolve)
        if self.methods is not None:
            for each in self.methods:
                METHODS.load(each if isinstance(each, str) else each.name)
            suite = suite.with_methods(
                METHODS.resolve(each) if isinstance(each, str) else each for each in self.methods
            )
        if self.seeds is not None:
            suite = suite.model_copy(update={"seeds": self.seeds})
        settings = self.settings()
        default = suite.changed(settings) if settings else suite
        if not self.tuned:
            return make_plan(default, self.out.absolute(), settings, None, self.data_root)
        from bench.search.tuned import side_by_side, tuned_suite

        suite, tuning = tuned_suite(suite, self.tuned_dir, self.data_root)
        suite = suite.changed(settings) if settings else suite
        untuned: frozenset[str] = frozenset()
        if self.tuned == BOTH:
            suite, untuned = side_by_side(suite, default, self.data_root)
        return make_plan(suite, self.out.absolute(), settings, tuning, self.data_root, untuned)

    def conditions(self) -> Conditions:
        return replace(
            super().conditions(),
            executor=self.executor,
            hosts=self.hosts_per_trial(),
            keep_model=self.keep_model,
        )

    def resources(self) -> Resources:
        return replace(super().resources(), hosts=self.hosts_per_trial() if self.executor == "ray" else 0)

    def hosts_per_trial(self) -> int:
        """A trial needs a core beside those of its hosts; how many a cluster has is not known here."""
        few_cores = self.address is None and (os.cpu_count() or 1) <= 2
        return self.hosts or (1 if few_cores else 2)
