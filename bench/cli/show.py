"""`bench show`: one thing in full."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from bench.cli import options
from bench.errors import UserError, nearest


def show(
    kind: Annotated[str, typer.Argument(help="suite, method, partition, cell or tuned.")],
    name: Annotated[
        str, typer.Argument(help="Its name; for a cell, the beginning of its id; for tuned, a suite.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Seed, for a partition.")] = 0,
    data_root: options.DataRoot = None,
    root: options.Runs = Path("runs"),
    tuned_dir: options.TunedDir = Path("tuned"),
) -> None:
    """Show one thing in full."""
    show_thing(kind, name, seed, data_root, root, tuned_dir)


def show_thing(kind: str, name: str, seed: int, data_root: Path | None, root: Path, tuned_dir: Path) -> None:
    shows: dict[str, Callable[[], None]] = {
        "suite": lambda: _show_suite(name),
        "method": lambda: _show_method(name),
        "partition": lambda: _show_partition(name, seed, data_root),
        "cell": lambda: _show_cell(name, root),
        "tuned": lambda: _show_tuned(name, tuned_dir),
    }
    if kind not in shows:
        raise UserError(f"cannot show '{kind}'; {nearest(kind, shows)}")
    if not name and kind != "tuned":
        raise UserError(f"which {kind}? give its name: bench show {kind} NAME")
    shows[kind]()


def _show_suite(name: str) -> None:
    import yaml

    from bench.suite.loading import load_suite

    suite = load_suite(name).model_dump(mode="json")
    print(yaml.safe_dump(suite, sort_keys=False, allow_unicode=True), end="")


def _show_method(name: str) -> None:
    from bench.cli.console import make_console
    from bench.cli.method_view import hyperparameter_table
    from bench.method_pages.method_info import method_info

    info = method_info(name)
    console = make_console()
    console.print(info.text, markup=False, highlight=False)
    console.print(hyperparameter_table(info))


def _show_partition(name: str, seed: int, data_root: Path | None) -> None:
    """A suite's clients: their domain, size, and how many samples of each class they hold.

    Of a suite's variants, those that leave out a domain are shown.
    """
    from bench.cli.console import make_console
    from bench.cli.partition_view import partition_table
    from bench.data import load_dataset
    from bench.data.partitions import partition_spec
    from bench.data.unseen import divided
    from bench.suite.loading import load_suite
    from bench.suite.unseen import in_turn

    if seed < 0:
        raise UserError(f"--seed {seed}: must not be negative")
    suite = load_suite(name).model_copy(update={"variants": ()})
    options = dict(suite.dataset)
    dataset = load_dataset(options.pop("name"), options, data_root)
    console = make_console()
    variants = in_turn(suite, data_root).variants
    for setting in [suite.changed(variant.set) for variant in variants] or [suite]:
        partition = divided(partition_spec(setting.partition), setting.unseen, dataset, seed)
        console.print(partition_table(dataset, partition, console.width))
        if partition.unseen:
            tested = sum(map(len, partition.tested.values()))
            console.say(f"unseen: nobody trains on it; its {tested} samples are what models are tested on")
        console.say(f"partition {partition.digest}, data {dataset.checksum[:12]}")


def _show_cell(name: str, root: Path) -> None:
    """A cell by the beginning of its id: what it is and how it went."""
    from bench.cli.console import make_console
    from bench.records.files import read_json
    from bench.records.run_folder import find_cell

    folder = find_cell(root, name).path
    console = make_console()
    for file in ("config.json", "result.json", "error.json"):
        if (folder / file).is_file():
            console.say(str(folder / file))
            console.print_json(data=read_json(folder / file))


def _show_tuned(suite: str, folder: Path) -> None:
    """What `bench tune` has found, for one suite or all."""
    from bench.cli.console import make_console
    from bench.cli.tune import tuned_table
    from bench.search.tuned import found_files, load_tuned
    from bench.suite.loading import as_option

    files = found_files(folder, suite)
    if not files:
        of = f" of suite '{suite}'" if suite else ""
        option = as_option(suite) if suite else "NAME"
        raise UserError(f"nothing tuned{of} in {folder}; run `bench tune --suite {option}` first")
    make_console().print(tuned_table([load_tuned(file) for file in files]))
