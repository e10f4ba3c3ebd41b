"""Runs the best configurations of searches with further seeds, until each choice stands (see `selection`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench.observer import Item, Observer, View, Words
from bench.records.run_folder import RunFolder
from bench.search.finish import DataFacts, selection_of
from bench.search.plan import Search
from bench.search.request import TuneRequest
from bench.search.selection import MOST_SEEDS, Selection, cells_at, folder_of, in_words
from bench.suite.planning import PlannedCell
from bench.text import counted
from bench.trials.conditions import make_conditions


@dataclass(frozen=True)
class Settled:
    """A search whose trials have ended."""

    search: Search
    data: DataFacts
    together: int
    """How many cells may be stacked."""


def run_further_seeds(
    searches: Sequence[Settled],
    request: TuneRequest,
    executor: str,
    deadline: float | None,
    observer: Observer,
) -> None:
    """One seed more at a time, of all searches together; none is begun after the deadline.

    Says for every search on how many seeds its choice stands.
    """
    for each in searches:
        _forget_failed_default(each)
    while waiting := list(_waiting(searches, request)):
        if deadline is not None and time.monotonic() >= deadline:
            break
        for each, selection in waiting:
            cells = counted(len(selection.missing), "cell")
            observer.say(f"{each.search.row}: {in_words(selection)}; {cells} to run with one seed more")
        _run([(each, selection.missing) for each, selection in waiting], request, executor, observer)
    _say_which_stand(searches, request, observer)


def _say_which_stand(searches: Sequence[Settled], request: TuneRequest, observer: Observer) -> None:
    for each in searches:
        selection = selection_of(each.search, each.search.journal(), request.limits(), each.data)
        if selection is not None and selection.stands:
            observer.say(f"{each.search.row}: {in_words(selection)}")


def _waiting(searches: Sequence[Settled], request: TuneRequest) -> Iterator[tuple[Settled, Selection]]:
    """The searches whose choice does not stand yet."""
    for each in searches:
        selection = selection_of(each.search, each.search.journal(), request.limits(), each.data)
        if selection is not None and selection.missing:
            yield each, selection


def _forget_failed_default(each: Settled) -> None:
    """Without a score of the default there is no outcome, so it is tried once more."""
    journal = each.search.journal()
    for seed in range(1, MOST_SEEDS):
        for cell in cells_at(each.search, journal[0], seed):
            folder_of(each.search, cell).forget_failure()


def _run(
    waiting: Sequence[tuple[Settled, Sequence[PlannedCell]]],
    request: TuneRequest,
    executor: str,
    observer: Observer,
) -> None:
    from bench.cluster.driver_node import open_driver_node
    from bench.trials.cell_trials import run_cells_in
    from bench.trials.start import start

    cells = [cell for _, missing in waiting for cell in missing]
    folders = {cell.cell_id: folder_of(each.search, cell) for each, missing in waiting for cell in missing}
    first = RunFolder(waiting[0][0].search.directory)
    configs = [cell.config for cell in cells]
    resources = start(request, configs, observer.say)
    items = [
        Item(cell.cell_id, f"{cell.method} seed {cell.seed}", cell.config.training.rounds) for cell in cells
    ]
    with (
        observer.view("further seeds", items, 0, Words("cells", "validation")) as view,
        open_driver_node(first, request.data_root, joined=request.address is not None) as driver_node,
    ):
        conditions = make_conditions(
            configs,
            cpus=resources.cpus,
            gpus=resources.gpus or 0.0,
            together=min(each.together for each, _ in waiting),
            driver_node=driver_node,
            data_root=request.data_root,
            executor=executor,
            checkpoint_seconds=request.checkpoint_every,
        )
        run_cells_in(folders, cells, conditions, driver_node, resources, _Watcher(view, observer.say))


class _Watcher:
    """Shows what happens to the cells."""

    def __init__(self, view: View, say: Callable[[str], None]) -> None:
        self._view, self.said = view, say

    def advanced(self, cell: str, rounds: int, average: float | None) -> None:
        self._view.advanced(cell, rounds, average)

    def finished(self, cell: str) -> None:
        self._view.finished(cell)

    def failed(self, cell: str, reason: str) -> None:
        self._view.failed(cell, reason)
