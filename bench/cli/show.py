"""`bench show`: one thing in full."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bench.cli.inspection_requests import ShowRequest
from bench.cli.request_options import command_of
from bench.errors import UserError, nearest

if TYPE_CHECKING:
    from bench.cli.console import BenchConsole


@command_of(ShowRequest, positional=("kind", "name"))
def show(request: ShowRequest) -> None:
    """Show one thing in full."""
    from bench.cli.console import make_console

    kind = request.kind
    if kind not in SHOWS:
        raise UserError(f"cannot show '{kind}'; {nearest(kind, SHOWS)}")
    if not request.name and kind != "tuned":
        raise UserError(f"which {kind}? give its name: bench show {kind} NAME")
    SHOWS[kind](request, make_console())


def _show_suite(request: ShowRequest, console: BenchConsole) -> None:
    import yaml

    from bench.suite.loading import load_suite

    suite = load_suite(request.name).model_dump(mode="json")
    print(yaml.safe_dump(suite, sort_keys=False, allow_unicode=True), end="")


def _show_method(request: ShowRequest, console: BenchConsole) -> None:
    """What its source says, and per hyperparameter its values and meaning."""
    from rich.box import SIMPLE
    from rich.table import Table

    from bench.method_pages.method_info import method_info
    from search_spaces.spaces import note_on_derivation

    info = method_info(request.name)
    console.print(info.text, markup=False, highlight=False)
    grid = Table(box=SIMPLE, pad_edge=False, show_lines=False)
    grid.add_column("hyperparameter", no_wrap=True, style="bold")
    grid.add_column("default", no_wrap=True)
    for heading in ("allowed", "paper", "search range"):
        grid.add_column(heading)
    grid.add_column("meaning", ratio=1)
    for each in info.hyperparameters:
        grid.add_row(
            each.name, each.default, each.allowed, each.paper, each.searched or "not searched", each.meaning
        )
    console.print(grid)
    if note := note_on_derivation(request.name):
        console.say(f"search ranges: {note}")


def _show_partition(request: ShowRequest, console: BenchConsole) -> None:
    """A suite's clients: their domain, size, and how many samples of each class they hold.

    Of a suite's variants, those that leave out a domain are shown.
    """
    from bench.cli.partition_view import partition_table
    from bench.data import load_dataset
    from bench.data.partitions import partition_spec
    from bench.data.unseen import divided
    from bench.suite.loading import load_suite
    from bench.suite.unseen import in_turn

    if request.seed < 0:
        raise UserError(f"--seed {request.seed}: must not be negative")
    suite = load_suite(request.name).model_copy(update={"variants": ()})
    options = dict(suite.dataset)
    dataset = load_dataset(options.pop("name"), options, request.data_root)
    variants = in_turn(suite, request.data_root).variants
    for setting in [suite.changed(variant.set) for variant in variants] or [suite]:
        partition = divided(partition_spec(setting.partition), setting.unseen, dataset, request.seed)
        console.print(partition_table(dataset, partition, console.width))
        if partition.unseen:
            tested = sum(map(len, partition.tested.values()))
            console.say(f"unseen: nobody trains on it; its {tested} samples are what models are tested on")
        console.say(f"partition {partition.digest}, data {dataset.checksum[:12]}")


def _show_cell(request: ShowRequest, console: BenchConsole) -> None:
    """A cell by the beginning of its id: what it is and how it went."""
    from bench.records.files import read_json
    from bench.records.run_folder import find_cell

    folder = find_cell(request.root, request.name).path
    for file in ("config.json", "result.json", "error.json"):
        if (folder / file).is_file():
            console.say(str(folder / file))
            console.print_json(data=read_json(folder / file))


def _show_tuned(request: ShowRequest, console: BenchConsole) -> None:
    """What `bench tune` has found, for one suite or all."""
    from bench.cli.tune import tuned_table
    from bench.search.tuned import found_files, load_tuned
    from bench.suite.loading import as_option

    suite, folder = request.name, request.tuned_dir
    files = found_files(folder, suite)
    if not files:
        of = f" of suite '{suite}'" if suite else ""
        option = as_option(suite) if suite else "NAME"
        raise UserError(f"nothing tuned{of} in {folder}; run `bench tune --suite {option}` first")
    console.print(tuned_table([load_tuned(file) for file in files]))


SHOWS: dict[str, Callable[[ShowRequest, BenchConsole], None]] = {
    "suite": _show_suite,
    "method": _show_method,
    "partition": _show_partition,
    "cell": _show_cell,
    "tuned": _show_tuned,
}
