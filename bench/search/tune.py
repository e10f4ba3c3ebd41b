"""Runs the searches of a request, and writes what they found."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from bench.engine.assembly import Assembled
from bench.engine.executors import cells_at_once
from bench.observer import Observer
from bench.records.files import check_writable
from bench.records.lock import alone
from bench.records.run_folder import RunFolder
from bench.search.budget import Budget, Limits, repeated_failure
from bench.search.checks import check_search
from bench.search.finish import Conclusions, DataFacts, selection_of, settle
from bench.search.further_seeds import Settled, run_further_seeds
from bench.search.journal import Journal
from bench.search.plan import Search, searches_of
from bench.search.preview import preview, time_in_words, trials_left
from bench.search.progress import SearchProgress, searches_view
from bench.search.request import TuneRequest
from bench.search.selection import effective_samples
from bench.search.targets import with_targets
from bench.search.tracking import SearchTracker
from bench.search.tuned import Tuned, write_tuned
from bench.search.widening import in_words, ranges_of, widening, wider_ranges
from bench.text import counted
from bench.tracking.background import Background
from bench.trials.conditions import make_conditions
from methods.core.optional import MakesSamples

EXECUTOR = "auto"
"""Searches leave the choice to each problem."""


@dataclass(frozen=True)
class TuneOutcome:
    """What a request has come to."""

    tuned: Sequence[Tuned]
    """What was chosen, per method; of a method whose default has no score yet there is nothing."""
    incomplete: Sequence[str]
    """One sentence per search that has not spent its budget."""
    searches: Sequence[Search]
    explore: str
    """How to see the searches in MLflow."""
    at_bound: Sequence[str] = ()
    """One sentence per search whose best value lies at an end of its range."""
    can_widen: bool = False
    """Whether `--widen` would make a range wider."""


@dataclass(frozen=True)
class _Checked:
    """A search whose values its method takes."""

    search: Search
    together: int
    """How many cells may be stacked."""
    data: DataFacts
    is_long: bool
    """Whether its method makes samples, which takes several times as long as training on given ones."""


def tune(request: TuneRequest, observer: Observer, searches: Sequence[Search] | None = None) -> TuneOutcome:
    """Run what is missing of every search; a kill loses only the rounds since the last checkpoints.

    `searches` are those of the request unless others are given.
    """
    seconds = request.seconds()
    deadline = None if seconds is None else time.monotonic() + seconds
    searches = searches_of(request) if searches is None else searches
    check_writable(request.out.absolute())
    if any(_is_open(search, search.journal(), request) for search in searches):
        request.begin_ray()
    checked = [_check(search, request, observer) for search in searches]
    if request.widen:
        searches = [_wider(each.search, each.data, request, observer) for each in checked]
        checked = [_check(search, request, observer) for search in searches]
    for line in preview(searches, request.limits()):
        observer.say(line)
    tracker = SearchTracker(request.tracking_uri, request.out.absolute())
    with ExitStack() as held:
        for search in searches:
            held.enter_context(alone(search.directory, "bench tune"))
        background = held.enter_context(Background(observer.say, "trials"))
        conclusions = held.enter_context(Conclusions(request, tracker, background, observer))
        journals = [_settled(search, tracker, background) for search in searches]
        lost = _run(checked, journals, request, tracker, background, conclusions, observer)
        if request.limits().auto_seeds:
            ended = [each for each in checked if not _is_open(each.search, each.search.journal(), request)]
            settled = [Settled(each.search, each.data, each.together) for each in ended]
            run_further_seeds(settled, request, EXECUTOR, deadline, observer)
        tuned = with_targets(searches, [conclusions.of(each.search, each.data) for each in checked])
        for search, found in zip(searches, tuned, strict=True):
            if found and found.to_target:
                write_tuned(request.tuned_dir, search.file_name, found)
    problems = map(partial(_incompleteness, request.limits()), checked, journals, lost)
    at_ends = [
        (search, found) for search, found in zip(searches, tuned, strict=True) if found and found.at_bound
    ]
    return TuneOutcome(
        [found for found in tuned if found],
        [problem for problem in problems if problem],
        searches,
        tracker.ui_command(),
        [in_words(search, found) for search, found in at_ends],
        any(found.budget.complete and wider_ranges(search, found) for search, found in at_ends),
    )


def dry_run(request: TuneRequest, observer: Observer, given: Sequence[Search] | None = None) -> None:
    """Check everything that searches check, and say what they would do; nothing is written or extracted."""
    check_writable(request.out.absolute())
    searches = []
    for search in searches_of(request) if given is None else given:
        built = _built(search, request, observer, extract=False)
        if request.widen and built:
            search = _wider(search, _facts(built), request, observer)
        searches.append(search)
    limits = request.limits()
    for line in preview(searches, limits):
        observer.say(line)
    left = {search.identity: trials_left(search, limits) for search in searches}
    observer.say(f"searches: {counted(sum(left.values()), 'trial')} to run")
    rounds = [(search.cells({})[0].config, left[search.identity] * search.cost) for search in searches]
    observer.say(time_in_words(request, rounds))


def _wider(search: Search, data: DataFacts, request: TuneRequest, observer: Observer) -> Search:
    """A search whose best value is at an end of its range with a wider one; another as it is."""
    ranges, sentence = widening(search, request.limits(), data)
    observer.say(f"{search.row}: {sentence}")
    return search.widened_to(ranges, len(search.journal().trials)) if ranges else search


def _is_open(search: Search, journal: Journal, request: TuneRequest) -> bool:
    return not Budget(search, request.limits()).complete(journal)


def _check(search: Search, request: TuneRequest, observer: Observer) -> _Checked:
    built = _built(search, request, observer)
    together, _ = cells_at_once(built[0].problem, EXECUTOR)
    is_long = isinstance(built[0].problem.method, MakesSamples)
    return _Checked(search, together, _facts(built), is_long)


def _built(search: Search, request: TuneRequest, observer: Observer, extract: bool = True) -> list[Assembled]:
    """The default under every setting; empty where features would have to be computed and are not."""
    settings = check_search(search, request, observer.say, extract)
    return [setting.assembled for setting in settings if setting.assembled is not None]


def _facts(built: Sequence[Assembled]) -> DataFacts:
    sizes = [[len(samples.y) for samples in each.problem.validation.values()] for each in built]
    return DataFacts(built[0].fingerprints.data_checksum, effective_samples(sizes))


def _settled(search: Search, tracker: SearchTracker, background: Background) -> Journal:
    """The journal, with the ends that a killed driver had no time to write down."""
    RunFolder(search.directory).remove_scratch()
    journal = search.journal()
    if (wider := ranges_of(search)) != journal.widened:
        journal.widen(wider)
    settle(search, journal)
    for trial in journal.trials:
        if trial.outcome:
            background.submit(tracker.log_trial, search, trial)
    return journal


def _run(
    checked: Sequence[_Checked],
    journals: Sequence[Journal],
    request: TuneRequest,
    tracker: SearchTracker,
    background: Background,
    conclusions: Conclusions,
    observer: Observer,
) -> list[int]:
    """Run what is missing; for each search, how many trials lost their process and stay open."""
    limits = request.limits()
    pending = [
        (each, journal)
        for each, journal in zip(checked, journals, strict=True)
        if _is_open(each.search, journal, request)
    ]
    if not pending:
        return [0] * len(checked)
    # The long ones first: at the end, processes wait for each other no longer than for a short one.
    pending.sort(key=lambda each: not each[0].is_long)
    # Importing Ray costs seconds, which searches with nothing to do should not pay.
    from bench.cluster.driver_node import open_driver_node
    from bench.cluster.nodes import nodes
    from bench.search.running_search import Assignment
    from bench.search.searches import run_searches
    from bench.trials.start import start

    configs = (cell.config for each, _ in pending for cell in each.search.cells({}))
    resources = start(request, configs, observer.say)
    observer.say(resources.in_words(nodes()))
    folder = RunFolder(pending[0][0].search.directory)
    with (
        searches_view([(each.search, journal) for each, journal in pending], limits, observer) as view,
        open_driver_node(folder, request.data_root, joined=request.address is not None) as driver_node,
    ):
        assignments = []
        for each, journal in pending:
            over = partial(conclusions.begin_if_chosen, each.search, each.data)
            progress = SearchProgress(each.search, view, tracker, background, over, observer.say)
            conditions = make_conditions(
                [cell.config for cell in each.search.cells({})],
                cpus=resources.cpus,
                gpus=resources.gpus or 0.0,
                together=each.together,
                driver_node=driver_node,
                data_root=request.data_root,
                executor=EXECUTOR,
                checkpoint_seconds=request.checkpoint_every,
            )
            assignments.append(Assignment(each.search, journal, limits, conditions, progress))
        lost = run_searches(
            assignments, driver_node, resources, resources.at_once(nodes()), request.seconds()
        )
    losses = {each.search.directory: count for (each, _), count in zip(pending, lost, strict=True)}
    return [losses.get(each.search.directory, 0) for each in checked]


def _incompleteness(limits: Limits, checked: _Checked, journal: Journal, lost: int) -> str | None:
    """What keeps the search from being complete, if anything does."""
    search = checked.search
    if kind := repeated_failure(journal, limits, lost):
        return (
            f"the search of {search.row} was ended: {limits.max_failures} trials failed with '{kind}' "
            f"(see {search.directory / 'trials.jsonl'}); mend the cause and run the same command to resume"
        )
    if Budget(search, limits).complete(journal):
        selection = selection_of(search, journal, limits, checked.data)
        if selection is None or selection.stands:
            return None
        why = f"the default failed with {selection.failed}" if selection.failed else "the time was up"
        return (
            f"the search of {search.row} has not compared its best trials on enough seeds, since {why}; "
            "run the same command to resume"
        )
    ended = sum(trial.outcome is not None for trial in journal.trials)
    died = f", {lost} lost their process" if lost else ""
    return (
        f"the search of {search.row} is not complete ({ended} trials ended{died}); run the same command "
        "to resume"
    )
