"""`bench tune`."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from rich.table import Table

from bench.cli.checks import above_zero, at_least, gpu_share
from bench.cli.console import BenchConsole, make_console
from bench.cli.tune_view import ViewWatcher, settings_text, view_of
from bench.engine.cell_run import SCRATCH, Conditions
from bench.errors import UserError, nearest
from bench.records.files import check_writable
from bench.records.provenance import commit
from bench.runs.drive import Background, alone
from bench.search.budget import Budget, Limits, repeated_failure
from bench.search.endings import settle
from bench.search.journal import Journal
from bench.search.plan import REDUCTION, Search, check_search, make_search, with_settings
from bench.search.report import write_report
from bench.search.result import outcome_of
from bench.search.space import describe
from bench.search.suggestions import ALGORITHMS
from bench.search.tuned import FOLDER, Tuned, write_tuned
from bench.suite.loading import load_suite
from bench.suite.methods import METHODS
from bench.suite.overrides import parse_assignment
from bench.tracking.searches import SearchTracker
from bench.tracking.tracker import TrackingError

if TYPE_CHECKING:  # importing Ray costs seconds, which a search with nothing to do should not pay
    from bench.scheduling.trials import Resources

OF_THE_DATA = ("dataset.", "partition.", "model.")
UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class TuneOptions:
    suite: str
    methods: list[str]
    space: str
    trials: int
    budget: str
    search: str
    scheduler: str
    seeds: int
    seed: int
    rounds: int | None
    assignments: list[str]
    sweeps: list[str]
    time_budget: str | None
    max_failures: int
    cpus_per_trial: float
    gpus_per_trial: float | None
    max_concurrent: int | None
    address: str | None
    tracking_uri: str | None
    checkpoint_every: float
    data_root: Path | None
    out: Path
    tuned_dir: Path

    def check(self) -> None:
        for name, value, known in (
            ("--space", self.space, ("paper", "wide")),
            ("--search", self.search, ALGORITHMS),
            ("--scheduler", self.scheduler, ("asha", "none")),
            ("--budget", self.budget, ("trials", "rounds")),
        ):
            if value not in known:
                raise UserError(f"unknown {name} '{value}'; {nearest(value, known)}")
        at_least(
            1,
            trials=self.trials,
            seeds=self.seeds,
            rounds=self.rounds,
            max_failures=self.max_failures,
            max_concurrent=self.max_concurrent,
        )
        at_least(0, seed=self.seed)
        above_zero(cpus_per_trial=self.cpus_per_trial, checkpoint_every=self.checkpoint_every)
        gpu_share(self.gpus_per_trial)
        if not self.methods:
            raise UserError("--method is empty; give a name, several separated by commas, or all")

    def settings(self) -> dict[str, Any]:
        changes = dict(parse_assignment(text) for text in self.assignments)
        return changes | ({"training.rounds": self.rounds} if self.rounds is not None else {})

    def seconds(self) -> float | None:
        if self.time_budget is None:
            return None
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", self.time_budget)
        if not match or not float(match[1]):
            raise UserError(
                f"--time-budget {self.time_budget}: give a number and s, m or h, such as 90s or 2h"
            )
        return float(match[1]) * UNITS[match[2]]

    def limits(self, seconds: float | None = None) -> Limits:
        return Limits(self.trials, self.budget == "rounds", self.max_failures, seconds)


def tune_suite(options: TuneOptions) -> int:
    """Returns the exit code: 0 when all searches are complete, 1 when not, 130 when stopped."""
    console = make_console()
    options.check()
    seconds = options.seconds()
    searches = _searches(options)
    data_root = options.data_root.absolute() if options.data_root else None
    conditions = Conditions(data_root=data_root, checkpoint_seconds=options.checkpoint_every, commit=commit())
    check_writable(options.out.absolute())
    checksums = {
        search.method: check_search(search, options.trials, data_root).fingerprints.data_checksum
        for search in searches
    }
    _say_plan(console, options, searches)
    tracker = SearchTracker(options.tracking_uri, options.out.absolute())
    deadline = None if seconds is None else time.monotonic() + seconds
    outcomes: list[Tuned] = []
    failures: list[str] = []
    try:
        for position, search in enumerate(searches):
            share = _share(deadline, len(searches) - position)
            with alone(search.directory, "bench tune"):
                problem = _run(search, options, options.limits(share), conditions, tracker, console)
                tuned = _conclude(search, options, tracker, console, checksums[search.method])
            outcomes += [tuned] if tuned else []
            failures += [problem] if problem else []
    except KeyboardInterrupt:
        console.say("\nstopped; nothing is lost: run the same command again to go on")
        return 130
    if outcomes:
        console.print(tuned_table(outcomes))
    for problem in failures:
        console.say(problem)
    console.say(f"explore: {tracker.ui_command()}")
    if not failures:
        console.say(f"use it: {_command_that_uses(searches, options)}")
    return 1 if failures else 0


def _searches(options: TuneOptions) -> list[Search]:
    suite = load_suite(options.suite)
    names = list(dict.fromkeys(entry.name for entry in suite.methods))
    if options.methods != ["all"]:
        names = options.methods
        for name in names:
            METHODS.load(name)
        suite = suite.with_methods(names)
    suite = suite.model_copy(update={"seeds": options.seeds})
    settings = options.settings()
    suite = suite.changed(settings) if settings else suite
    sweeps = _sweeps(options.sweeps, names)
    suite = with_settings(suite, {key: v for key, v in sweeps.items() if key.startswith(OF_THE_DATA)})
    return [
        make_search(
            suite,
            name,
            options.space,
            options.search,
            options.scheduler,
            options.seed,
            sweeps,
            options.out.absolute(),
        )
        for name in names
    ]


def _sweeps(texts: Sequence[str], methods: Sequence[str]) -> dict[str, list[Any]]:
    """`fedlsa.lam=0.1,0.7` → key and values."""
    found: dict[str, list[Any]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        try:
            listed = yaml.safe_load(f"[{values}]") if equals else []
        except yaml.YAMLError:
            listed = []
        if not isinstance(listed, list) or len(listed) < 2:
            raise UserError(f"--sweep {text}: expected KEY=A,B,… with two values or more; for one use --set")
        beginnings = ["training.optimiser.", *OF_THE_DATA, *(f"{method}." for method in methods)]
        if not key.startswith(tuple(beginnings)):
            raise UserError(f"--sweep {key}: the key must begin with one of {', '.join(beginnings)}")
        found[key] = [_number(value) for value in listed]
    return found


def _number(value: Any) -> Any:
    """YAML takes 1e-3 for a text, which nobody means."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _say_plan(console: BenchConsole, options: TuneOptions, searches: Sequence[Search]) -> None:
    first = searches[0]
    suite = first.suite
    cells = len(first.cells({}))
    console.say(f"suite {suite.suite} v{suite.version}: {suite.title}")
    console.say(
        f"budget: {options.trials} trials a method"
        + (
            f" = {options.trials * first.cost} rounds, early stops making room for more trials"
            if options.budget == "rounds"
            else ""
        )
        + f"; a trial has {first.rounds} rounds in {cells} {'cell' if cells == 1 else 'cells'}"
    )
    console.say(
        f"objective: mean accuracy over clients on {suite.training.validation:.0%} of their training data; "
        "the test sets are not read"
    )
    stops = (
        f"asha, one in {REDUCTION} goes on from round {first.grace}" if first.scheduler == "asha" else "none"
    )
    console.say(f"search: {first.algorithm}, seed {first.seed}; early stops: {stops}; trial 0 is the default")
    for search in searches:
        there = search.count()
        part = ""
        if there is not None:
            taken = min(options.trials, there)
            chosen = "all" if taken == there else f"{taken}, drawn with the seed,"
            part = f" ({chosen} of {there} configurations)"
        console.say(f"  {search.method}: {describe(search.space)}{part}")


def _command_that_uses(searches: Sequence[Search], options: TuneOptions) -> str:
    command = f"bench run --suite {options.suite} --tuned"
    tuned = [search.method for search in searches]
    if tuned != [entry.name for entry in load_suite(options.suite).methods]:
        command += f" --methods {','.join(tuned)}"
    return command if options.tuned_dir == FOLDER else f"{command} --tuned-dir {options.tuned_dir}"


def _share(deadline: float | None, searches: int) -> float | None:
    """What is left, in equal parts."""
    return None if deadline is None else max(1.0, (deadline - time.monotonic()) / searches)


def _run(
    search: Search,
    options: TuneOptions,
    limits: Limits,
    conditions: Conditions,
    tracker: SearchTracker,
    console: BenchConsole,
) -> str | None:
    """Run what is missing; returns what keeps the search from being complete, if anything does."""
    search.directory.mkdir(parents=True, exist_ok=True)
    for left_by_a_kill in search.directory.glob(f"{SCRATCH}*"):
        shutil.rmtree(left_by_a_kill, ignore_errors=True)
    journal = search.journal()
    settle(search, journal)
    with Background(console, "trials") as background:
        for trial in journal.trials:
            if trial.outcome:
                background.submit(tracker.log_trial, search, trial)
        lost = 0
        if not Budget(search, limits).complete(journal):
            from bench.scheduling.trials import start_ray
            from bench.search.driver import run_search

            start_ray(options.address)
            resources, at_once = _resources(options, console)
            with view_of(search, journal, limits, console) as view:
                watcher = ViewWatcher(search, view, tracker, background)
                lost = run_search(search, journal, limits, conditions, resources, at_once, watcher)
    return _incompleteness(search, journal, limits, lost)


def _resources(options: TuneOptions, console: BenchConsole) -> tuple[Resources, int]:
    import ray

    from bench.scheduling.trials import Resources, settled

    resources = settled(
        Resources(options.cpus_per_trial, options.gpus_per_trial, max_concurrent=options.max_concurrent)
    )
    cluster = ray.cluster_resources()
    at_once = resources.at_once(cluster)
    room = replace(resources, max_concurrent=None).at_once(cluster)
    why = (
        "--max-concurrent"
        if at_once < room
        else f"Ray has {cluster.get('CPU', 0):g} CPU"
        + (f" and {cluster['GPU']:g} GPU" if cluster.get("GPU") else "")
    )
    gpus = f", {resources.gpus:g} GPU" if resources.gpus else ""
    console.say(f"resources: {resources.cpus:g} CPU{gpus} a trial; {at_once} at once ({why})")
    return resources, at_once


def _incompleteness(search: Search, journal: Journal, limits: Limits, lost: int) -> str | None:
    if kind := repeated_failure(journal, limits, lost):
        return (
            f"the search of {search.method} was ended: {limits.max_failures} failed with '{kind}' (see "
            f"{search.directory / 'trials.jsonl'}); mend the cause and run the same command to go on"
        )
    if Budget(search, limits).complete(journal):
        return None
    ended = sum(trial.outcome is not None for trial in journal.trials)
    died = f", {lost} lost their process" if lost else ""
    so_far = f"{ended} trials ended{died}"
    return f"the search of {search.method} is not complete ({so_far}); run the same command to go on"


def _conclude(
    search: Search, options: TuneOptions, tracker: SearchTracker, console: BenchConsole, checksum: str
) -> Tuned | None:
    """The files of the search, as far as it has come."""
    journal, limits = search.journal(), options.limits()
    trials = Budget(search, limits).paid(journal)
    if not any(trial.outcome for trial in trials):
        return None
    files = write_report(search, trials)
    tuned = outcome_of(search, journal, limits, checksum, commit())
    figures: Mapping[str, float] = {}
    if tuned is None:
        console.say(f"{search.method}: the default has no score yet, so there is nothing to compare with")
    else:
        files.append(write_tuned(options.tuned_dir, tuned))
        figures = {"best_validation": tuned.best.validation, "default_validation": tuned.default.validation}
    try:
        tracker.log_search(search, figures, files)
    except TrackingError as error:
        console.say(f"warning: the search of {search.method} is not in MLflow: {error}")
    return tuned


def tuned_table(outcomes: Sequence[Tuned]) -> Table:
    grid = Table("suite", "method", "default", "tuned", "chosen", "trials", "rounds", "search", "space")
    for tuned in outcomes:
        spent = tuned.budget
        grid.add_row(
            tuned.suite,
            tuned.method,
            f"{100 * tuned.default.validation:.2f}",
            f"{100 * tuned.best.validation:.2f}",
            settings_text(tuned.best.set),
            f"{spent.finished} + {spent.stopped} stopped + {spent.failed} failed"
            + ("" if spent.complete else " (not complete)"),
            str(spent.rounds_spent),
            f"{tuned.how.search}, {tuned.how.scheduler}",
            tuned.how.space,
        )
    return grid
