"""What requests for runs, searches and studies have in common: places, resources, and the suite."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from bench.cluster import local_ray
from bench.cluster.joining import check_address
from bench.errors import UserError
from bench.request import DataRoot, Option, Request, RunsFolder, TunedFolder, above_zero, at_least, gpu_share

if TYPE_CHECKING:
    from bench.cluster.resources import Resources
    from bench.suite.model import Suite


@dataclass(frozen=True, kw_only=True)
class ComputingRequest(Request):
    """The resources to compute with, and the places to read from and write to."""

    rounds: Annotated[int | None, Option("Number of rounds; default: the suite's.")] = None
    cpus_per_trial: Annotated[float, Option("CPU cores (and threads) per trial.")] = 1
    gpus_per_trial: Annotated[
        float | None, Option("GPUs per trial, e.g. 0.25 or 1; default: 1 if there are any.")
    ] = None
    max_concurrent: Annotated[
        int | None, Option("Maximum number of concurrent trials; default: as many as fit.")
    ] = None
    address: Annotated[
        str | None,
        Option("HOST:PORT of a Ray cluster, or auto for the one on this machine; default: start Ray."),
    ] = None
    tracking_uri: Annotated[str | None, Option("MLflow tracking URI; default: SQLite in --out.")] = None
    checkpoint_every: Annotated[float, Option("Seconds between the checkpoints of a cell.")] = 15
    data_root: DataRoot = None
    out: RunsFolder = Path("runs")
    tuned_dir: TunedFolder = Path("tuned")

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, rounds=self.rounds, max_concurrent=self.max_concurrent)
        above_zero(cpus_per_trial=self.cpus_per_trial, checkpoint_every=self.checkpoint_every)
        gpu_share(self.gpus_per_trial)
        check_address(self.address)

    def begin_ray(self) -> None:
        """Start Ray on this machine while other things are done; a cluster is there already."""
        if self.address is None:
            local_ray.begin()

    def resources(self) -> "Resources":
        """What a trial may use; imports Ray."""
        from bench.cluster.resources import Resources

        return Resources(self.cpus_per_trial, self.gpus_per_trial, max_concurrent=self.max_concurrent)


@dataclass(frozen=True)
class SuiteRequest(ComputingRequest):
    """One suite, and what is changed in it."""

    suite: Annotated["str | Suite", Option("Name of a suite, or path of a suite file; several as a,b,c.")]
    overrides: Annotated[
        Mapping[str, Any], Option("Override a setting, e.g. fedlsa.lam=0.7; may be repeated.")
    ] = field(default_factory=dict, kw_only=True)

    sweeps: Annotated[
        Mapping[str, Sequence[Any]],
        Option(
            "Sweep a key, e.g. fedlsa.lam=0.1,0.5 or partition.beta=0.01..1:log5 (also linear5; random20 and "
            "uniform20 draw values on a logarithmic and on a linear scale); repeat it for the cross product."
        ),
    ] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if both := [key for key in self.sweeps if key in self.overrides]:
            raise UserError(f"--set and --sweep both have {both[0]}; leave it out of one of them")

    @cached_property
    def loaded(self) -> "Suite":
        """The suite as its file has it; the file is read once."""
        from bench.suite.loading import load_suite
        from bench.suite.model import Suite

        return self.suite if isinstance(self.suite, Suite) else load_suite(self.suite)

    @property
    def folder(self) -> Path:
        """The folder below `out` that holds everything of this suite."""
        return self.out / self.loaded.suite

    def each_suite(self) -> list[Self]:
        """This request for every suite that is named in it, separated by commas."""
        if not isinstance(self.suite, str) or Path(self.suite).is_file():
            return [self]
        names = [name.strip() for name in self.suite.split(",") if name.strip()]
        if twice := [name for place, name in enumerate(names) if name in names[:place]]:
            raise UserError(f"--suite names '{twice[0]}' twice; give each suite once")
        return [replace(self, suite=name) for name in names] or [self]

    def begin_ray_early(self) -> None:
        """Without a folder there is work for Ray: let it start during the imports that follow."""
        if not all(each.folder.exists() for each in self.each_suite()):
            self.begin_ray()

    def settings(self) -> dict[str, Any]:
        """The keys of the suite that this request changes."""
        rounds = {"training.rounds": self.rounds} if self.rounds is not None else {}
        return dict(self.overrides) | rounds

    def asked(self, suite: "Suite") -> "Suite":
        """The suite with the settings and the sweep of this request.

        What is swept is the grid, what is set is fixed, and everything else stays as it is.
        """
        from bench.suite.sweeps import crossed, values_of

        settings = self.settings()
        sweeps = {key: values_of(key, values) for key, values in self.sweeps.items()}
        suite = suite.without_settings_of({*settings, *sweeps})
        variants = [
            variant.model_copy(update={"set": {**variant.set, **settings}}) for variant in suite.variants
        ]
        sweep = crossed(suite.sweep, sweeps, fixed=tuple(settings))
        suite = suite.model_copy(update={"variants": tuple(variants), "sweep": sweep})
        return suite.changed(settings) if settings else suite
