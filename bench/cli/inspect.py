"""`bench list` and `bench show`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from bench.cli.console import make_console
from bench.errors import UserError, nearest
from bench.records.files import read_json
from bench.suite.model import as_option, load_suite, suite_names


def list_kind(kind: str, root: Path) -> None:
    from bench.data import dataset_summaries
    from bench.encoders import encoder_summaries
    from bench.models import MODELS
    from bench.suite.methods import AROUND, METHODS, WRAPPERS

    listings: dict[str, Callable[[], dict[str, str]]] = {
        "suites": lambda: {name: load_suite(name).title for name in suite_names()},
        "methods": lambda: {
            **METHODS.summaries(),
            **{f"{name}{AROUND}METHOD": summary for name, summary in WRAPPERS.summaries().items()},
        },
        "datasets": dataset_summaries,
        "models": MODELS.summaries,
        "encoders": encoder_summaries,
        "runs": lambda: _runs(root),
    }
    if kind not in listings:
        raise UserError(f"cannot list '{kind}'; {nearest(kind, listings)}")
    rows = listings[kind]()
    console = make_console()
    if not rows:
        console.say(f"no {kind} in {root}")
        return
    grid = Table.grid(padding=(0, 3))
    for name, summary in rows.items():
        grid.add_row(Text(name, style="bold"), Text(summary))
    console.print(grid)


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


def _runs(root: Path) -> dict[str, str]:
    return {str(file.parent): _state_of_run(file) for file in sorted(root.glob("*/plan.json"))}


def _state_of_run(plan_file: Path) -> str:
    try:
        plan = read_json(plan_file)
        done = sum((plan_file.parent / cell["dir"] / "result.json").exists() for cell in plan["cells"])
        return f"{plan['suite']['title']}: {done} of {len(plan['cells'])} cells done"
    except (OSError, ValueError, KeyError, TypeError):
        return f"damaged: {plan_file.name} cannot be read; run the suite again to write it anew"


def _show_suite(name: str) -> None:
    import yaml

    suite = load_suite(name).model_dump(mode="json")
    print(yaml.safe_dump(suite, sort_keys=False, allow_unicode=True), end="")


def _show_method(name: str) -> None:
    import inspect

    from bench.suite.methods import METHODS

    kind = METHODS.load(name)
    console = make_console()
    console.print(inspect.getmodule(kind).__doc__ or "", markup=False, highlight=False)
    grid = Table("hyperparameter", "default", "type")
    for key, field in kind.model_fields.items():
        grid.add_row(key, _default(field), _type_name(field.annotation))
    console.print(grid)


def _default(field: Any) -> str:
    from pydantic_core import PydanticUndefined, to_json

    return "" if field.default is PydanticUndefined else to_json(field.default).decode()


def _type_name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")


def _show_partition(name: str, seed: int, data_root: Path | None) -> None:
    """A suite's clients: their domain, size, and how many samples of each class they hold."""
    from bench.cli.partition_view import partition_table
    from bench.data import load_dataset
    from bench.data.partitions import class_counts, make_partition, partition_spec

    if seed < 0:
        raise UserError(f"--seed {seed}: must not be negative")
    suite = load_suite(name)
    options = dict(suite.dataset)
    dataset = load_dataset(options.pop("name"), options, data_root)
    partition = make_partition(partition_spec(suite.partition), dataset, seed)
    counts = class_counts(partition, dataset)
    console = make_console()
    console.print(partition_table(dataset, partition, counts, console.width))
    console.say(f"partition {partition.digest}, data {dataset.checksum[:12]}")


def _show_cell(name: str, root: Path) -> None:
    """A cell by the beginning of its hash: what it is and how it went."""
    found = [
        file.parent
        for file in sorted(root.glob("*/cells/*/config.json"))
        if file.parent.name.rpartition("-")[2].startswith(name)
    ]
    if not found:
        raise UserError(f"no cell '{name}' in {root}; the folder names below */cells end with the hashes")
    if len(found) > 1:
        names = ", ".join(folder.name for folder in found[:5])
        raise UserError(f"'{name}' begins the hash of {len(found)} cells ({names}); give more of it")
    console = make_console()
    for file in ("config.json", "result.json", "error.json"):
        if (found[0] / file).exists():
            console.say(str(found[0] / file))
            console.print_json((found[0] / file).read_text(encoding="utf-8"))


def _show_tuned(suite: str, folder: Path) -> None:
    """What `bench tune` has found, for one suite or all."""
    from bench.cli.tune import tuned_table
    from bench.search.tuned import load_tuned

    files = sorted(folder.glob(f"{suite or '*'}/*.yaml"))
    if not files:
        of = f" of suite '{suite}'" if suite else ""
        option = as_option(suite) if suite else "NAME"
        raise UserError(f"nothing tuned{of} in {folder}; run `bench tune --suite {option}` first")
    make_console().print(tuned_table([load_tuned(file) for file in files]))
