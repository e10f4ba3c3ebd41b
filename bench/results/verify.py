"""Computes cells of a results file again and compares: bit for bit where the machine is of the same kind."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.config.cell import CellConfig
from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.errors import UserError
from bench.models import MODELS
from bench.observer import Observer
from bench.records.cell_folder import CellFolder
from bench.records.reader import CellRecord
from bench.records.results_file import CellLine, read_lines, record_of
from bench.records.round_columns import columns_of
from bench.records.schema import Provenance, Result, RoundRecord
from bench.results.consistency import inconsistencies
from bench.results.request import VerifyRequest
from bench.suite.methods import METHODS, code_digest
from bench.trials.conditions import make_conditions

ASSUMED_SD = 1.0
"""Points of AVG: the standard deviation of reruns on another kind of machine, where it was not measured."""
DEVIATIONS = 3.0
MOST_THREADS = 1024
KIND = ("machine", "cpu", "device", "threads")
NUMERICAL = ("torch", "torchvision", "numpy")


@dataclass(frozen=True)
class Verdict:
    """What became of one line of the file."""

    cell: str
    agrees: bool
    reason: str


@dataclass(frozen=True)
class Verification:
    verdicts: Sequence[Verdict]
    """Of the cells that were computed again, and of every line that contradicts itself."""
    lines: int

    @property
    def agrees(self) -> bool:
        return all(verdict.agrees for verdict in self.verdicts)


def verify(request: VerifyRequest, observer: Observer) -> Verification:
    """Check every line against itself, then compute some cells again, chosen with the seed.

    On another kind of machine, the final AVG may differ by `tolerance` points. Rounding differs there, and
    training amplifies it; unless told otherwise, three standard deviations of such reruns are allowed: of the
    one that the file states (`rerun_sd`), or else of one point. The file may come from a stranger, so a model
    from a Python file is built only with `trust_code`.
    """
    for given in request.methods:
        METHODS.resolve(given)
    file, tolerance = request.file, request.tolerance
    header, lines = read_lines(file)
    if tolerance is None:
        tolerance = DEVIATIONS * (header.rerun_sd if header.rerun_sd is not None else ASSUMED_SD)
    found: dict[str, Verdict] = {}
    for line in lines:
        record = record_of(file, header, line)
        if wrong := _contradictions(line, record):
            found[line.cell_id] = Verdict(record.name, False, "; ".join(wrong))
    for line in _chosen(lines, request.cells, request.seed):
        if line.cell_id not in found:
            record = record_of(file, header, line)
            _check_model(record, request.trust_code)
            observer.say(f"computing {record.name} again ({line.result.rounds} rounds)")
            found[line.cell_id] = _rerun(record, tolerance, request.data_root)
    return Verification(list(found.values()), len(lines))


def _chosen(lines: Sequence[CellLine], count: int, seed: int) -> list[CellLine]:
    return random.Random(seed).sample(list(lines), min(count, len(lines)))


def _contradictions(line: CellLine, record: CellRecord) -> list[str]:
    broken = [] if line.own_digest() == line.digest else ["the line was changed after it was written"]
    return broken + inconsistencies(record)


def _rerun(stored: CellRecord, tolerance: float, data_root: Path | None) -> Verdict:
    _check_method(stored)
    assert stored.config is not None
    with tempfile.TemporaryDirectory(prefix="bench-verify-") as folder:
        conditions = _conditions(stored.config, stored.provenance, data_root)
        conditions.take_effect()
        try:
            rounds, result = _computed(CellFolder(Path(folder)), stored.config, conditions)
        except UserError:
            raise
        except Exception as error:  # whatever a configuration that nobody has run leads to
            reason = f"it cannot be computed again ({type(error).__name__}: {error})"
            return Verdict(stored.name, False, " ".join(reason.split()))
    return _compared(stored, replace(stored, rounds=rounds, result=result), tolerance)


def _computed(
    folder: CellFolder, config: CellConfig, conditions: Conditions
) -> tuple[list[RoundRecord], Result | None]:
    run = CellRun(folder, config, conditions)
    try:
        while not run.done:
            run.advance()
        return run.folder.rounds(), run.folder.result()
    finally:
        run.close()


def _conditions(config: CellConfig, recorded: Provenance, data_root: Path | None) -> Conditions:
    """As recorded, but without Ray, with which `loop` agrees bit for bit."""
    on_gpu = str(recorded.hardware.get("device", "cpu")).startswith("cuda")
    return make_conditions(
        [config],
        cpus=_threads(recorded),
        gpus=1.0 if on_gpu else 0.0,
        together=1,
        executor=recorded.executor if recorded.executor in ("loop", "stacked") else "loop",
        data_root=data_root,
    )


def _threads(recorded: Provenance) -> float:
    """As recorded, since their number changes the bits; one where the record makes no sense."""
    threads = recorded.hardware.get("threads", 1)
    return float(threads) if isinstance(threads, int) and 1 <= threads <= MOST_THREADS else 1.0


def _check_model(cell: CellRecord, trust_code: bool) -> None:
    assert cell.config is not None
    model = cell.config.model
    if MODELS.load(model.name).runs_code and not trust_code:
        raise UserError(
            f"{cell.name}: its model is the Python file {model.options.get('path')}, which would run here; "
            "read it, and give --trust-code if it does no harm"
        )


def _check_method(cell: CellRecord) -> None:
    assert cell.config is not None
    wanted = cell.config.method
    if wanted.source is not None and METHODS.source_digest(wanted.name) != wanted.source:
        raise UserError(
            f"{cell.name}: its method comes from a file that is not at hand; give it with --methods FILE.py"
        )
    kind = METHODS.load(wanted.name)
    if kind.version != wanted.version:
        raise UserError(
            f"{cell.name} is of version {wanted.version} of {wanted.name}, which is at {kind.version} here; "
            f"check out commit {cell.provenance.commit} to verify it"
        )


def _compared(stored: CellRecord, again: CellRecord, tolerance: float) -> Verdict:
    ours, theirs = again.provenance, stored.provenance
    for key in ("data_checksum", "partition_hash"):
        if getattr(ours, key) != getattr(theirs, key):
            return Verdict(stored.name, False, f"the data here are others: another {key.replace('_', ' ')}")
    differences = _differences_of_kind(theirs, ours)
    if not differences:
        return _compared_exactly(stored, again)
    assert stored.result is not None and again.result is not None
    before, after = stored.result.final.avg, again.result.final.avg
    assert before is not None and after is not None
    apart = 100 * abs(after - before)
    where = f"another kind of machine ({'; '.join(differences)})"
    if _bytes(stored.result) != _bytes(again.result):
        return Verdict(stored.name, False, f"other numbers of bytes were sent on {where}")
    words = f"AVG {100 * before:.2f} recorded, {100 * after:.2f} here, {apart:.2f} apart"
    return Verdict(
        stored.name,
        apart <= tolerance,
        f"{words}; {'within' if apart <= tolerance else 'beyond'} {tolerance:.2f} points for {where}",
    )


def _bytes(result: Result) -> tuple[int, int]:
    return result.bytes_up, result.bytes_down


def _compared_exactly(stored: CellRecord, again: CellRecord) -> Verdict:
    if columns_of(stored.rounds) == columns_of(again.rounds):
        return Verdict(stored.name, True, "every accuracy and byte count of every round is the same")
    both = zip(stored.rounds, again.rounds, strict=False)
    first = next((old.round for old, new in both if columns_of([old]) != columns_of([new])), "the last")
    changed = code_digest(stored.method) != stored.provenance.method_code
    why = "; the method's code has changed since" if changed else ""
    return Verdict(stored.name, False, f"round {first} differs on a machine of the same kind{why}")


def _differences_of_kind(there: Provenance, here: Provenance) -> list[str]:
    """What of machine and versions differs, as far as numbers can depend on it."""
    pairs = {key: (there.hardware.get(key), here.hardware.get(key)) for key in KIND}
    pairs |= {name: (there.versions.get(name), here.versions.get(name)) for name in NUMERICAL}
    return [f"{key} {old} there, {new} here" for key, (old, new) in pairs.items() if old != new]
