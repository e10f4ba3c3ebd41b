"""Makes the conditions of a command's cells, once everything that they depend on is known."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from bench.config.cell import CellConfig
from bench.contract.pass_cache import standing
from bench.engine.conditions import Conditions
from bench.models import model_spec
from bench.records.provenance import commit
from bench.suite.methods import METHODS

if TYPE_CHECKING:
    from bench.cluster.driver_node import DriverNode


def make_conditions(
    configs: Collection[CellConfig],
    *,
    cpus: float,
    gpus: float,
    together: int,
    driver_node: DriverNode | None = None,
    data_root: Path | None = None,
    executor: str = "auto",
    hosts: int = 2,
    checkpoint_seconds: float = 15.0,
    keep_model: bool = False,
) -> Conditions:
    """The conditions under which any process can compute these cells.

    `cpus` and `gpus` are what a trial has, and `together` is how many cells a process may stack (see
    `cells_at_once`). `driver_node` is where processes on other nodes get data and code.
    """
    names = sorted({config.method.name for config in configs})
    standings = {name: standing(name) for name in names}
    return Conditions(
        executor=executor,
        hosts=hosts,
        cpus=cpus,
        gpus=gpus,
        data_root=data_root.absolute() if data_root else None,
        data=driver_node,
        checkpoint_seconds=checkpoint_seconds,
        together=together,
        keep_model=keep_model,
        commit=commit(),
        contract={name: found for name, found in standings.items() if found != "passed"},
        own_methods=tuple(METHODS.to_bytes(name) for name in names if METHODS.is_own(name)),
        own_models=_own_models(configs) if driver_node is not None and driver_node.data_server else (),
    )


def _own_models(configs: Iterable[CellConfig]) -> tuple[str, ...]:
    """The texts of the users' model files, for nodes that do not have them."""
    models = {config.model.model_dump_json(): config.model for config in configs}
    texts = {text for model in models.values() for text in model_spec(model.model_dump()).sources()}
    return tuple(sorted(texts))
