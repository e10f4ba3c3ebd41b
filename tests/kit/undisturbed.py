"""What a run should have come to: the same cells, computed in this process without Ray and in peace."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.records.cell_folder import CellFolder
from tests.kit.cli import read, result_of, rounds_of
from tests.kit.tune import Package


def assert_like_one_machine(run: Path, package: Package, executor: str, folder: Path) -> int:
    """Every planned cell is there, with the records of the same cell run here; returns how many there are.

    Nothing else is left in the cells' folders.
    """
    torch.set_num_threads(1)
    planned = read(run / "plan.json")["cells"]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(package.folder)
        for each in planned:
            _compare(CellFolder(run / each["dir"]), executor, folder)
    return len(planned)


def _compare(cell: CellFolder, executor: str, folder: Path) -> None:
    config = cell.config()
    assert config is not None
    assert cell.is_done, f"{cell.path.name} is missing"
    commit = read(cell.path / "result.json")["provenance"]["commit"]
    alone = CellRun(CellFolder(folder / config.cell_id), config, Conditions(executor, commit=commit))
    while not alone.done:
        alone.advance()
    assert rounds_of(cell.path) == rounds_of(alone.folder.path)
    found, expected = result_of(cell.path), result_of(alone.folder.path)
    for result in (found, expected):
        del result["provenance"]["executor"]
        result["provenance"].pop("contract", None)
    assert found == expected
    assert cell.predictions.read_bytes() == alone.folder.predictions.read_bytes()
    assert {file.name for file in cell.path.iterdir()} <= {
        *(file.name for file in alone.folder.path.iterdir()),
        "mlflow.json",
    }
