"""The folder of a run: its plan, its partition, and the folders of its cells.

plan.json       what was asked for
partition.json  who has which data, for the first setting and seed
cells/          one folder per cell
tables/, figures/, report.html   made from the above
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from bench.errors import UserError, nearest
from bench.records.cell_folder import CellFolder, first_problem
from bench.records.checksums import CHECKSUM, is_broken, with_checksum
from bench.records.files import read_json, write_json
from bench.records.schema import PartitionRecord, PlanRecord

MERGED = "merged"
"""Below the folder of the runs: reports on several of them."""
SCRATCH = ".tune-"
"""Prefix of the folders in which processes work, and Ray Tune keeps its own notes, while cells run."""


@dataclass(frozen=True)
class RunFolder:
    path: Path

    @property
    def plan(self) -> Path:
        return self.path / "plan.json"

    @property
    def has_plan(self) -> bool:
        return self.plan.is_file()

    def cell(self, directory: str) -> CellFolder:
        """The folder of a cell, given relative to that of the run."""
        return CellFolder(self.path / directory)

    def write_plan(self, plan: PlanRecord) -> None:
        write_json(self.plan, with_checksum(plan.model_dump(mode="json", by_alias=True, exclude_none=True)))

    def write_partition(self, partition: PartitionRecord) -> None:
        write_json(self._partition, with_checksum(partition.model_dump(mode="json")))

    def read_partition(self) -> PartitionRecord | None:
        """None where it was not recorded."""
        file = self._partition
        if not file.is_file():
            return None
        try:
            content = read_json(file)
            if is_broken(content):
                raise UserError(
                    f"{file} is damaged (its content and its checksum differ); delete it and make the report "
                    "again"
                )
            content.pop(CHECKSUM, None)
            return PartitionRecord.model_validate(content)
        except ValidationError as error:
            raise UserError(
                f"{file} cannot be read ({first_problem(error)}); delete it and make the report again"
            ) from None

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for what belongs to no record, on the same disk; gone when the block ends."""
        with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=self.path) as place:
            yield Path(place)

    def remove_scratch(self) -> None:
        """Remove what a killed driver left behind."""
        for left in self.path.glob(f"{SCRATCH}*"):
            shutil.rmtree(left, ignore_errors=True)

    @property
    def _partition(self) -> Path:
        return self.path / "partition.json"


def find_cell(root: Path, beginning: str) -> CellFolder:
    """The cell whose id begins so, in any run below a folder."""
    found = [
        file.parent
        for file in sorted(root.glob("*/cells/*/config.json"))
        if file.parent.name.rpartition("-")[2].startswith(beginning)
    ]
    if not found:
        raise UserError(f"no cell '{beginning}' in {root}; the folder names below */cells end with the ids")
    if len(found) > 1:
        names = ", ".join(folder.name for folder in found[:5])
        raise UserError(f"'{beginning}' begins the id of {len(found)} cells ({names}); give more of it")
    return CellFolder(found[0])


def find_run(name: str, root: Path) -> Path:
    """A run by its folder, its results file, or the name of its suite below the folder of the runs."""
    if name.endswith(".jsonl"):
        return Path(name)
    for candidate in (Path(name), root / name):
        if RunFolder(candidate).has_plan:
            return candidate
    known = [file.parent.name for file in root.glob("*/plan.json")]
    raise UserError(f"no run '{name}' here or in {root}; {nearest(name, known)}")
