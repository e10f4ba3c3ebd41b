"""`bench.load_failure`: the arguments with which a client's work failed, for a debugger."""

from __future__ import annotations

from pathlib import Path

from bench.engine.clients.debug import FailedWork, failed_work
from bench.records.cell_folder import CellFolder
from bench.records.run_folder import find_cell
from bench.suite.methods import METHODS
from methods.base import FedAlgorithm


def load_failure(
    cell: str | Path,
    *,
    method: str | type[FedAlgorithm] | None = None,
    data_root: str | Path | None = None,
    root: str | Path = "runs",
) -> FailedWork:
    """What a run with the executor `debug` kept of the client's work that failed.

        failed = bench.load_failure("3f9a1c", method="./my_method.py")
        failed.exchange.local(*failed.arguments)     # raises the same exception again

    `cell` is the beginning of the cell's id, for a run below the folder `root`, or the path of the cell's
    folder. A method that is not installed has to be given as it was to `bench run`: the path of its file, or
    its class. `data_root` is where the datasets are, if not where the run found them.
    """
    if method is not None:
        METHODS.resolve(method)
    folder = CellFolder(Path(cell)) if Path(cell).is_dir() else find_cell(Path(root), str(cell))
    return failed_work(folder, None if data_root is None else Path(data_root))
