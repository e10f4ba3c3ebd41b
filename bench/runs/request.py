"""What a user asks of `bench run`, from the command line or from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from bench.engine.conditions import Conditions
from bench.errors import UserError
from bench.records.provenance import commit
from bench.runs.plan import Plan, make_plan
from bench.suite.loading import load_suite
from bench.suite.methods import METHODS
from bench.suite.model import MethodEntry, Suite
from bench.validation import above_zero, at_least, gpu_share

if TYPE_CHECKING:
    from bench.scheduling.resources import Resources


BOTH: Final = "both"


@dataclass(frozen=True)
class RunRequest:
    """A suite, what is changed of it, and the resources to run it with."""

    suite: str | Suite
    """A suite's name, the path of its file, or the suite itself."""
    methods: Sequence[str | MethodEntry] | None = None
    """Only these methods: names, paths of files, or rows of their own; None: those of the suite."""
    seeds: int | None = None
    rounds: int | None = None
    encoder: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Other values at dotted keys, such as {"fedlsa.lam": 0.7}."""
    tuned: bool | Literal["both"] = False
    """Use the hyperparameters that `bench tune` has chosen; "both": and show the defaults beside them."""
    tuned_dir: Path = Path("tuned")
    executor: str = "auto"
    hosts: int | None = None
    """Host actors per trial with the executor `ray`; None: 2, or 1 on two cores."""
    cpus_per_trial: float = 1
    gpus_per_trial: float | None = None
    """None: a whole GPU where there is one."""
    max_concurrent: int | None = None
    address: str | None = None
    tracking_uri: str | None = None
    checkpoint_every: float = 15
    data_root: Path | None = None
    out: Path = Path("runs")

    def __post_init__(self) -> None:
        at_least(
            1, seeds=self.seeds, rounds=self.rounds, hosts=self.hosts, max_concurrent=self.max_concurrent
        )
        above_zero(cpus_per_trial=self.cpus_per_trial, checkpoint_every=self.checkpoint_every)
        gpu_share(self.gpus_per_trial)
        if self.tuned not in (True, False, BOTH):
            raise UserError(f"--tuned {self.tuned}: give --tuned alone, or --tuned both")
        if self.methods is not None and not self.methods:
            raise UserError("--methods is empty; give names separated by commas, such as fedavg,fedlsa")

    def settings(self) -> dict[str, Any]:
        """The keys of the suite that this request changes."""
        changes = dict(self.overrides)
        if self.rounds is not None:
            changes["training.rounds"] = self.rounds
        if self.encoder is not None:
            changes["encoder"] = self.encoder
        return changes

    def plan(self) -> Plan:
        """The cells of the suite as asked for."""
        suite = self.suite if isinstance(self.suite, Suite) else load_suite(self.suite)
        suite = suite.resolved(METHODS.resolve)
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
        return Conditions(
            executor=self.executor,
            hosts=self.hosts_per_trial(),
            data_root=self.data_root.absolute() if self.data_root else None,
            checkpoint_seconds=self.checkpoint_every,
            commit=commit(),
        )

    def resources(self) -> Resources:
        """What a trial may use; imports Ray."""
        from bench.scheduling.resources import Resources

        return Resources(
            cpus=self.cpus_per_trial,
            gpus=self.gpus_per_trial,
            hosts=self.hosts_per_trial() if self.executor == "ray" else 0,
            max_concurrent=self.max_concurrent,
        )

    def hosts_per_trial(self) -> int:
        """A trial needs a core beside those of its hosts; how many a cluster has is not known here."""
        few_cores = self.address is None and (os.cpu_count() or 1) <= 2
        return self.hosts or (1 if few_cores else 2)
