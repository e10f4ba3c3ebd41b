"""Results in one file, `results/SUITE.jsonl`: small enough for a repository, complete enough to verify.

The first line says what the file is about: the suite, its table, its domains, who has which data, and how
hyperparameters were found (`origins`, which cells refer to). Every other line is one finished cell: its
configuration, the row it belongs to, its rounds as columns, its result with provenance, and a digest of the
line. What rounds keep is enough to compute every accuracy and byte count of the result again; seconds and a
method's own metrics stay in the run folder.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import Field, ValidationError

from bench.config.cell import CellConfig, identity
from bench.errors import UserError
from bench.records.cell_folder import first_problem
from bench.records.files import parse_json, write_atomically
from bench.records.reader import CellRecord, Run, check_planned_once, load_run
from bench.records.round_columns import columns_of, rounds_from
from bench.records.schema import PartitionRecord, Record, Result, SuiteRecord, SweptRecord, TableRecord

R = TypeVar("R", bound=Record)

FORMAT: Final = 1
"""The version of the format; a reader refuses any other."""
SUFFIX: Final = ".jsonl"
LARGEST_SD: Final = 10.0
"""Points of AVG; a file that states more would pass any check of itself."""
AGAIN: Final = "write the file again with `bench submit RUN`"


class Origin(Record):
    """What the runs of some cells had in common: changes of the suite, and how values were tuned."""

    settings: dict[str, Any] = Field(default_factory=dict, alias="set")
    tuning: dict[str, Any] | None = None


class Header(Record):
    """The first line."""

    format: int = FORMAT
    suite: SuiteRecord
    table: TableRecord
    domains: tuple[str, ...] = Field(min_length=1)
    partition: PartitionRecord | None = None
    rerun_sd: float | None = Field(default=None, ge=0, le=LARGEST_SD, allow_inf_nan=False)
    """Measured standard deviation, in points of AVG, of reruns on another kind of machine."""
    origins: dict[str, Origin] = Field(default_factory=dict)


class CellLine(Record):
    """Any other line."""

    cell_id: str = Field(alias="cell")
    label: str
    variant: str | None = Field(default=None, exclude_if=lambda variant: variant is None)
    """Where a sweep names it; None: as in the configuration."""
    swept: SweptRecord | None = Field(default=None, exclude_if=lambda swept: swept is None)
    origin: str
    config: dict[str, Any]
    """What config.json holds, without the identity."""
    rounds: dict[str, Any]
    result: Result
    digest: str
    """Of everything else on the line."""

    def own_digest(self) -> str:
        """The digest that the line should have."""
        return identity(self.model_dump(mode="json", by_alias=True, exclude={"digest"}))


def is_results_file(path: Path) -> bool:
    return path.suffix == SUFFIX


def load_records(path: Path) -> Run:
    """A run folder or a results file."""
    return read_results(path) if is_results_file(path) else load_run(path)


def read_results(file: Path) -> Run:
    """The cells of a results file as the run that they make up."""
    return run_of(file, *read_lines(file))


def run_of(file: Path, header: Header, lines: Sequence[CellLine]) -> Run:
    """The same of lines that have been read from the file."""
    run = Run(
        sources=(file,),
        suite=header.suite,
        layout=header.table,
        domains=header.domains,
        cells=tuple(record_of(file, header, line) for line in lines),
        partition=header.partition,
    )
    check_planned_once(run, file, AGAIN)
    return run


def read_lines(file: Path) -> tuple[Header, list[CellLine]]:
    """The lines as they stand; a UserError names one that cannot be read."""
    try:
        first, *others = file.read_bytes().splitlines() or [b""]
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}; give the path of a results file") from None
    header = _parsed(file, 1, first, Header)
    if header.format != FORMAT:
        raise UserError(
            f"{file} has format {header.format}, but this version reads {FORMAT}; use the version of the "
            "harness that wrote it"
        )
    if not others:
        raise UserError(f"{file} has no cells; {AGAIN}")
    return header, [_parsed(file, number, line, CellLine) for number, line in enumerate(others, start=2)]


def write_results(file: Path, run: Run, rerun_sd: float | None = None) -> None:
    """Write the finished cells of a run, the same bytes for the same records."""
    origins = {_origin_name(cell): _origin(cell) for cell in run.cells}
    header = Header(
        suite=run.suite,
        table=run.layout,
        domains=run.domains,
        partition=run.partition,
        rerun_sd=rerun_sd,
        origins=dict(sorted(origins.items())),
    )
    lines: list[Record] = [header, *(line_of(cell) for cell in run.cells if cell.result)]
    write_atomically(file, "".join(f"{_text(line)}\n" for line in lines))


def line_of(cell: CellRecord) -> CellLine:
    """A finished cell as a line."""
    assert cell.config is not None and cell.result is not None
    line = CellLine(
        cell_id=cell.cell_id,
        label=cell.label,
        variant=cell.variant if cell.swept else None,
        swept=cell.swept,
        origin=_origin_name(cell),
        config=cell.config.identifying(),
        rounds=columns_of(cell.rounds),
        result=cell.result,
        digest="",
    )
    return line.model_copy(update={"digest": line.own_digest()})


def record_of(file: Path, header: Header, line: CellLine) -> CellRecord:
    """A line as the record of a cell."""
    origin = header.origins.get(line.origin)
    if origin is None:
        raise UserError(
            f"{file}: cell {line.cell_id} refers to the origin '{line.origin}', which the first line lacks; "
            f"{AGAIN}"
        )
    config = _config(file, line)
    try:
        rounds = rounds_from(line.rounds)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise UserError(f"{file}: the rounds of cell {line.cell_id} are damaged; {AGAIN}") from None
    if line.result.final.test is None:
        raise UserError(f"{file}: the result of cell {line.cell_id} has no final.test; {AGAIN}")
    return CellRecord(
        cell_id=line.cell_id,
        method=config.method.name,
        label=line.label,
        variant=config.variant if line.variant is None else line.variant,
        seed=config.seed,
        config=config,
        rounds=rounds,
        result=line.result,
        error=None,
        tuning=origin.tuning,
        settings=origin.settings,
        swept=line.swept,
    )


def _config(file: Path, line: CellLine) -> CellConfig:
    """The configuration under the name that the line gives it, whether or not that is its identity."""
    try:
        return CellConfig.model_validate({"cell": line.cell_id, **line.config})
    except ValidationError as error:
        raise UserError(
            f"{file}: the configuration of cell {line.cell_id} is damaged ({first_problem(error)}); {AGAIN}"
        ) from None


def _origin(cell: CellRecord) -> Origin:
    return Origin(settings=dict(cell.settings), tuning=dict(cell.tuning) if cell.tuning else None)


def _origin_name(cell: CellRecord) -> str:
    return identity(_origin(cell).model_dump(mode="json", by_alias=True))[:8]


def _parsed(file: Path, number: int, text: bytes, kind: type[R]) -> R:
    try:
        return kind.model_validate(parse_json(text))
    except ValueError as error:
        raise UserError(f"{file} is damaged at line {number} ({first_problem(error)}); {AGAIN}") from None


def _text(line: Record) -> str:
    return json.dumps(line.model_dump(mode="json", by_alias=True), ensure_ascii=False, separators=(",", ":"))
