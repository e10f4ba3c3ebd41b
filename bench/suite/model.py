"""The model of a suite: a versioned YAML file, checked key by key. Reading it needs no torch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from bench.config.cell import Attackers, Count, EncoderChoice, Evaluation, Section, Training, Unseen
from bench.config.names import FolderName
from bench.errors import UserError
from bench.suite.overrides import assign
from bench.suite.sweeps import values_of
from bench.validation import validated

EACH = "each in turn"
"""In place of a domain's name: the suite is run once without every domain."""


class MethodEntry(Section):
    """A row of the table: a method, with other hyperparameters than its defaults if need be."""

    name: str
    label: str | None = None
    set: dict[str, Any] = Field(default_factory=dict)
    model: dict[str, Any] | None = None
    """Instead of the suite's, for a method that needs more than others to train."""
    search: dict[str, list[Any]] = Field(default_factory=dict, exclude_if=lambda search: not search)
    """Hyperparameter → the values that searches choose from, in place of the search space's. A single value
    keeps the hyperparameter as the row has it."""

    @field_validator("model", mode="before")
    @classmethod
    def _name_alone_is_a_choice(cls, choice: Any) -> Any:
        return {"name": choice} if isinstance(choice, str) else choice


class Variant(Section):
    """A setting of the suite in which some keys have other values, such as `partition.beta: 0.1`."""

    name: str
    set: dict[str, Any]


class TableLayout(Section):
    kind: Literal["domains", "variants", "ablation", "wrapped", "unseen"] = "domains"
    """Methods × domains for each variant, methods × variants, the same with ticks for the parts that a row
    has, methods with and without a wrapper side by side, or methods × domains left out in turn."""
    switches: dict[str, str] | None = None
    """Of an ablation: hyperparameter → heading of its column of ticks."""
    wrapper: str | None = None
    """The method that wraps others: `ggeur` pairs `fedprox` with `ggeur+fedprox`."""

    @model_validator(mode="after")
    def _has_the_settings_of_its_kind(self) -> TableLayout:
        for kind, key, value in (
            ("ablation", "switches", self.switches),
            ("wrapped", "wrapper", self.wrapper),
        ):
            if self.kind == kind and not value:
                raise ValueError(f"the table kind '{kind}' needs the key '{key}'; give it a value")
            if self.kind != kind and value is not None:
                raise ValueError(f"the key '{key}' belongs to the table kind '{kind}', not '{self.kind}'")
        return self


class Suite(Section):
    suite: FolderName
    """Also the name of its folder of results."""
    version: Count
    title: str
    dataset: dict[str, Any]
    partition: dict[str, Any]
    unseen: Unseen | None = None
    """What no client trains on; `domain` alone stands for every domain in turn, each in cells of its own."""
    attackers: Attackers | None = None
    """Clients that send forged replies or train on flipped labels."""
    encoder: EncoderChoice | None = None
    model: dict[str, Any]
    training: Training
    evaluation: Evaluation = Evaluation()
    methods: tuple[MethodEntry, ...] = Field(min_length=1)
    seeds: Annotated[Count, Field(le=10_000)] = 3
    variants: tuple[Variant, ...] = ()
    sweep: tuple[dict[str, list[Any]], ...] = Field(default=(), exclude_if=lambda sweep: not sweep)
    """Dotted key → a list of values, or a range such as `0.01..1:log5`. Keys are crossed with each other and
    with the variants; of several mappings, each is crossed by itself."""
    table: TableLayout = TableLayout()

    @field_validator("methods", mode="before")
    @classmethod
    def _names_alone_are_entries(cls, entries: Any) -> Any:
        if not isinstance(entries, list | tuple):
            return entries
        return [{"name": entry} if isinstance(entry, str) else entry for entry in entries]

    @field_validator("encoder", "model", mode="before")
    @classmethod
    def _name_alone_is_a_choice(cls, choice: Any) -> Any:
        return {"name": choice} if isinstance(choice, str) else choice

    @field_validator("sweep", mode="before")
    @classmethod
    def _one_mapping_or_several(cls, given: Any) -> Any:
        grids = [given] if isinstance(given, Mapping) else given
        if not isinstance(grids, list | tuple) or not all(isinstance(grid, Mapping) for grid in grids):
            raise ValueError(
                "give keys with their values, such as {fedlsa.lam: [0.1, 0.5]}, or a list of those"
            )
        try:
            return [
                {str(key): values_of(str(key), values) for key, values in grid.items()}
                for grid in grids
                if grid
            ]
        except UserError as error:
            raise ValueError(str(error)) from None

    @field_validator("unseen", mode="before")
    @classmethod
    def _domain_alone_is_each_in_turn(cls, choice: Any) -> Any:
        if isinstance(choice, str) and choice != "domain":
            raise ValueError("write 'domain' for each in turn, or one of {domain: NAME} and {clients: 0.2}")
        return {"domain": EACH} if choice == "domain" else choice

    @model_validator(mode="after")
    def _unseen_data_are_nobodys_own(self) -> Suite:
        if self.unseen is not None and self.evaluation.personal:
            raise ValueError(
                "with 'unseen', models are tested on data that no client has, so evaluation.personal has "
                "nothing to measure; leave out one of them"
            )
        if self.table.kind == "unseen" and (self.unseen is None or self.unseen.domain is None):
            raise ValueError("the table kind 'unseen' needs the key 'unseen: domain' of the suite; add it")
        return self

    @field_validator("evaluation")
    @classmethod
    def _is_tested(cls, evaluation: Evaluation) -> Evaluation:
        if not evaluation.test:
            raise ValueError("a table needs the test sets; leave out 'test'")
        return evaluation

    def changed(self, assignments: Mapping[str, Any]) -> Suite:
        """The suite with other values at dotted keys: `training.rounds`, `fedlsa.lam`, …"""
        raw = self.model_dump(exclude_unset=True)
        for key, value in assignments.items():
            assign(raw, key, value)
        return validated(Suite, raw, f"suite '{self.suite}'")

    def without_settings_of(self, keys: Collection[str]) -> Suite:
        """The suite whose variants do not set these keys, since the user does.

        Variants that set nothing else have become one, which needs no name.
        """
        kept: dict[str, Variant] = {}
        for variant in self.variants:
            rest = {key: value for key, value in variant.set.items() if key not in keys}
            name = variant.name if rest or rest == variant.set else ""
            kept.setdefault(name, Variant(name=name, set=rest))
        variants = tuple(kept.values())
        return self.model_copy(
            update={"variants": () if variants == (Variant(name="", set={}),) else variants}
        )

    def resolved(self, resolve: Callable[[str], str]) -> Suite:
        """The suite with paths of methods' files replaced by the names under which they are known."""
        entries = [entry.model_copy(update={"name": resolve(entry.name)}) for entry in self.methods]
        return self.model_copy(update={"methods": tuple(entries)})
