"""The executor `debug`: one client after another, with checks, and a file with the arguments that failed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bench.engine.assembly import assemble
from bench.engine.checkpoints import load_state, save_state
from bench.engine.clients.loop import LoopHost
from bench.engine.devices import use_precision
from bench.engine.problem import Problem
from bench.errors import UserError
from bench.records.cell_folder import CellFolder
from bench.suite.methods import METHODS
from methods.base import Batches, Exchange, FedAlgorithm, Message, Reply, State, Task
from methods.core.batches import Samples
from methods.core.optional import FoldsReplies


class DebugHost(LoopHost):
    """Computes what `loop` does, bit for bit, but stops at the first number that is not finite.

    Gradients are computed with autograd's anomaly detection, which names the operation whose gradient is NaN.
    When a client's work fails, its arguments are kept in the cell's folder; `load_failure` brings them back.
    """

    def __init__(
        self,
        problem: Problem,
        folder: CellFolder | None = None,
        cell_id: str = "",
        data_root: Path | None = None,
    ) -> None:
        """Without a folder, nothing is kept."""
        super().__init__(problem)
        self._folder, self._cell_id, self._data_root = folder, cell_id, data_root

    def work(
        self, phase: int, number: int, client: int, message: Message, samples: Samples
    ) -> tuple[Reply, State]:
        try:
            with torch.autograd.set_detect_anomaly(True):
                reply, state = super().work(phase, number, client, message, samples)
            require_finite({"reply": reply.content, "state": state})
        except Exception as error:
            error.add_note(f"this was the work of client {client} in round {number}")
            if self._folder is not None:
                self._keep(self._folder.failed_arguments, phase, number, client, message, samples)
                error.add_note(
                    f"to call it again in a debugger: failed = bench.load_failure('{self._cell_id}'), then "
                    "failed.exchange.local(*failed.arguments)"
                )
            raise
        return reply, state

    def _keep(
        self, file: Path, phase: int, number: int, client: int, message: Message, samples: Samples
    ) -> None:
        """Save what cannot be computed again from the cell's configuration."""
        count = len(samples.y)
        file.parent.mkdir(exist_ok=True)
        save_state(
            {
                "phase": phase,
                "round": number,
                "client": client,
                "state": self.state(client),
                "message": message,
                "batches": {
                    "samples": count,
                    "steps": self.problem.steps_of(count),
                    "batch_size": self.problem.batch_size,
                },
                "data_root": None if self._data_root is None else str(self._data_root.absolute()),
            },
            file,
        )


def require_finite(nest: Any) -> None:
    """FloatingPointError with the names of all tensors that hold NaN or infinity."""
    if found := [name for name, leaf in named_leaves(nest) if not bool(torch.isfinite(leaf).all())]:
        raise FloatingPointError(f"NaN or infinity in {', '.join(found)}")


def named_leaves(nest: Any, place: str = "") -> Iterator[tuple[str, Tensor]]:
    """Every tensor of a state or message, with its place in it."""
    if isinstance(nest, Tensor):
        yield place, nest
    elif hasattr(nest, "items"):
        for key, item in nest.items():
            yield from named_leaves(item, f"{place}.{key}" if place else str(key))


@dataclass(frozen=True)
class FailedWork:
    """A client's work that raised an exception: `failed.exchange.local(*failed.arguments)` does so again."""

    method: FedAlgorithm
    exchange: Exchange | FoldsReplies
    """What the client took part in: the method itself, or an exchange of its prelude."""
    client: int
    round: int
    """0: before the first."""
    arguments: tuple[Task, State, Message, Batches]
    """Task, private state, message and batches."""


def failed_work(folder: CellFolder, data_root: Path | None = None) -> FailedWork:
    """What the executor `debug` kept of a cell, with data and model assembled again.

    The method's code may have been changed since; the data are looked for where the run found them, unless
    `data_root` says otherwise.
    """
    config = folder.config()
    if config is None or not folder.failed_arguments.is_file():
        raise UserError(
            f"the cell in {folder.path} has kept no arguments; run the suite with --executor debug, which "
            "keeps those of the first client whose work fails"
        )
    if config.method.source is not None and not METHODS.is_own(config.method.name):
        raise UserError(
            f"the method '{config.method.name}' is not installed; give its file or class, say "
            f"bench.load_failure('{config.cell_id}', method='./{config.method.name}.py')"
        )
    kept = load_state(folder.failed_arguments)
    phase, number, client = kept["phase"], kept["round"], kept["client"]
    if data_root is None and kept["data_root"] is not None:
        data_root = Path(kept["data_root"])
    problem = assemble(config, data_root, clients=(client,)).problem
    use_precision(config.training.precision, problem.task.device)
    host = LoopHost(problem)
    host.adopt({client: kept["state"]})
    samples = host.made(client, number) if number else problem.train[client]
    arguments = host.arguments(phase, number, client, kept["message"], samples)
    return FailedWork(problem.method, problem.exchanges()[phase], client, number, arguments)
