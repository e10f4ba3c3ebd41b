"""The records of a run as typed objects: what the writer writes and the reader returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, model_validator

from bench.config.cell import SCHEMA
from bench.config.names import FolderName, Inside, MethodName, Natural, RoundNumber

DEFAULT_ROW = " (default)"
"""What the label of a row with default hyperparameters ends with, where a tuned row stands beside it."""
SHARED_ROW = " (shared)"
"""The same of a row with the values that were chosen for several suites."""


HUGE: Final = 1e100


def average(accuracies: Mapping[str, float]) -> float:
    """AVG: the unweighted mean over the domains."""
    return fmean(accuracies.values())


def row_name(label: str, variant: str, seed: int | None = None) -> str:
    """How a row of a table, or with a seed one of its cells, is called."""
    return " ".join(filter(None, (label, variant, "" if seed is None else f"seed {seed}")))


def finite(value: object) -> float | None:
    """The value as a float; None if it is absent, NaN, infinite, or so large that its square would be."""
    return float(value) if isinstance(value, int | float) and abs(value) < HUGE else None


class Record(BaseModel):
    """Keys that this version does not know are kept, so that newer records can be read."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)


class RoundRecord(Record):
    """One line of rounds.jsonl. Round 0 is what a method exchanges before the first round."""

    round: RoundNumber
    test: dict[str, float] | None = None
    """Accuracy on each domain's test set, in rounds that were evaluated."""
    test_loss: dict[str, float] | None = None
    """Mean cross-entropy on each domain's test set, where losses are recorded; infinite ones are left out."""
    personal: float | None = None
    """Mean over the clients of accuracy on their own kind of data."""
    validation: float | None = None
    """Mean over the clients of accuracy on their held-out samples."""
    bytes_up: Natural = 0
    bytes_down: Natural = 0
    clients: Natural = 0
    dropped: Natural = 0
    """Clients whose reply held NaN or infinity and was left out."""
    loss_terms: dict[str, float] | None = None
    """The clients' training loss and its terms, where losses are recorded: means over the steps of a client
    and then over the round's clients."""
    attackers: Natural = Field(default=0, exclude_if=lambda count: not count)
    """Attackers among the clients of the round."""
    metrics: dict[str, float] = Field(default_factory=dict, exclude_if=lambda metrics: not metrics)
    """Figures of the method's own."""
    seconds: float = 0.0

    @property
    def average(self) -> float | None:
        """AVG over the domains; None in a round that was not evaluated on test."""
        return average(self.test) if self.test else None


class FinalScores(Record):
    """The accuracies of the last round, or of the one that early stopping chose."""

    test: dict[str, float | None] | None = None
    avg: float | None = None
    std: float | None = None
    personal: float | None = None
    validation: float | None = None


class Oracle(Record):
    """The round that is best on test, which nobody knows beforehand."""

    round: RoundNumber | None = None
    avg: float | None = None


class Selection(Record):
    """The round that a result is taken from, where early stopping chose it by validation."""

    round: RoundNumber
    validation: float
    """Mean over the clients of accuracy on their held-out samples, in that round."""
    reason: str
    """Why the run ended when it did."""


class Provenance(Record):
    """Where a result comes from; empty where a record does not say."""

    commit: str | None = None
    versions: dict[str, str] = {}
    hardware: dict[str, Any] = {}
    executor: str = ""
    method_code: str | None = None
    """Digest of the files of the method's class and of those it is derived from."""
    contract: str | None = Field(default=None, exclude_if=lambda standing: standing is None)
    """What `bench check` said of a method that is not shipped: passed, failed or unchecked."""
    data_checksum: str | None = None
    partition_hash: str | None = None
    initial_weights: str | None = None
    data_notes: tuple[str, ...] = ()
    """How the data differ from what was published, where only a part of them is there."""


class Timing(Record):
    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    """Both are this cell's share of the time that all cells of its stack took."""
    stacked_with: int | None = Field(default=None, exclude_if=lambda count: count is None)
    """Cells that were computed in one call, this one included; None in records that do not say."""
    finished: str | None = None


class Result(Record):
    """result.json: its presence means that the cell is done."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    cell_id: str = Field(alias="cell")
    rounds: RoundNumber
    """Rounds that were run."""
    final: FinalScores
    selected: Selection | None = Field(default=None, exclude_if=lambda selected: selected is None)
    """The round that `final` is of, where early stopping chose it; None: the last one."""
    last5_avg: float | None = None
    oracle: Oracle | None = None
    bytes_up: Natural = 0
    bytes_down: Natural = 0
    dropped: Natural = 0
    provenance: Provenance = Provenance()
    timing: Timing = Timing()


class Failure(Record):
    """error.json: why a cell failed, until it succeeds."""

    error: str = "no message"
    traceback: str = ""

    @property
    def summary(self) -> str:
        """The first line, without control characters."""
        first = (self.error.strip().splitlines() or ["no message"])[0]
        return "".join(character for character in first if character.isprintable())


class SuiteRecord(Record):
    name: FolderName
    version: Natural
    title: str = ""


class TableRecord(Record):
    """The kind of table that a suite asks for, with the settings of that kind as further keys."""

    kind: str
    switches: dict[str, str] | None = None
    wrapper: str | None = None


class SweptRecord(Record):
    """The place of a cell in a sweep."""

    row: str
    """The label of its row before the sweep: `FedLSA` for the row `FedLSA λ=0.1`."""
    setting: str = ""
    """The variant of the suite before the sweep; empty if the suite has none."""
    values: dict[str, Any]
    """Every swept key that the cell depends on, as the user wrote it → its value."""
    defaults: dict[str, Any]
    """The same keys → what the row has without the sweep."""


class PlannedRecord(Record):
    """A cell of a plan, and the row of the table it belongs to."""

    cell_id: str = Field(alias="cell")
    directory: Inside = Field(alias="dir")
    method: MethodName
    label: str
    variant: str
    seed: Natural
    tuned: bool = Field(default=True, exclude_if=bool)
    """Whether the plan's record of tuning is about this cell; not in a row that shows the defaults beside."""
    swept: SweptRecord | None = Field(default=None, exclude_if=lambda swept: swept is None)
    """None: the cell is not part of a sweep."""


class PlanRecord(Record):
    """plan.json: what was asked for."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    suite: SuiteRecord
    table: TableRecord
    domains: tuple[str, ...] = Field(min_length=1)
    settings: dict[str, Any] | None = Field(default=None, alias="set")
    """What was changed of the suite: dotted key → value."""
    tuning: dict[str, Any] | None = None
    """How the hyperparameters were chosen, where a search did."""
    cells: tuple[PlannedRecord, ...]


class ClientShare(Record):
    """What one client has: its domain, and its training samples per class."""

    name: str
    domain: str
    counts: tuple[Natural, ...]


class PartitionRecord(Record):
    """partition.json: who has which data, for one setting and seed."""

    setting: str = ""
    classes: tuple[str, ...]
    clients: tuple[ClientShare, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _counts_every_class(self) -> PartitionRecord:
        if any(len(client.counts) != len(self.classes) for client in self.clients):
            raise ValueError("a client needs a count for each class")
        return self


def validations(rounds: Sequence[RoundRecord]) -> dict[int, float]:
    """Round → accuracy on the held-out samples, where it was measured."""
    return {line.round: line.validation for line in rounds if line.validation is not None}
