"""Suites: YAML files with a version, checked key by key. Reading them needs no torch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from bench.errors import UserError, nearest
from bench.suite.yaml_files import read_mapping
from bench.validation import validated

SUITES = Path(__file__).parents[1] / "suites"


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Count = Annotated[int, Field(ge=1, strict=True)]
"""One or more; not `true`, which Python takes for 1."""


class Training(Section):
    rounds: Count
    epochs: Count = 1
    """A client's passes over its samples in a round."""
    steps: Count | None = Field(default=None, exclude_if=lambda steps: steps is None)
    """Instead, so many steps in a round: the same work for clients and methods with more or fewer samples."""
    batch_size: Count
    participation: float = Field(default=1.0, gt=0, le=1)
    optimiser: dict[str, Any]
    validation: float = Field(default=0.0, ge=0, lt=1)
    """Share of every client's training data that is held out for choosing hyperparameters."""


class Evaluation(Section):
    every: Count = 5
    """Rounds between two looks at the test sets; the last round is always measured."""
    personal: bool = False
    """Also measure every client on its own kind of data."""


class EncoderChoice(Section):
    """What turns the images into features once and for all, before anything is trained."""

    name: str
    normalised: bool = False
    """Whether features are scaled to length 1."""


class MethodEntry(Section):
    """A row of the table: a method, with other hyperparameters than its defaults if need be."""

    name: str
    label: str | None = None
    set: dict[str, Any] = {}
    model: dict[str, Any] | None = None
    """Instead of the suite's, for a method that needs more than others to train."""


class Variant(Section):
    """A setting of the suite in which some keys have other values, such as `partition.beta: 0.1`."""

    name: str
    set: dict[str, Any]


class TableLayout(Section):
    kind: Literal["domains", "variants", "ablation", "wrapped"] = "domains"
    """Methods × domains for each variant, methods × variants, the same with ticks for the parts that a row
    has, or methods with and without a wrapper side by side."""
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
    suite: str
    """Also the name of its folder of results."""
    version: Count
    title: str
    dataset: dict[str, Any]
    partition: dict[str, Any]
    encoder: EncoderChoice | None = None
    model: dict[str, Any]
    training: Training
    evaluation: Evaluation = Evaluation()
    methods: tuple[MethodEntry, ...] = Field(min_length=1)
    seeds: Count = 3
    variants: tuple[Variant, ...] = ()
    table: TableLayout = TableLayout()

    @field_validator("suite")
    @classmethod
    def _can_name_a_folder(cls, name: str) -> str:
        if not re.fullmatch(r"\w[\w.+-]*", name):
            raise ValueError("it names a folder; use letters, digits, '_', '-', '+' and '.' only")
        return name

    @field_validator("methods", mode="before")
    @classmethod
    def _names_alone_are_entries(cls, entries: Any) -> Any:
        if not isinstance(entries, list | tuple):
            return entries
        return [{"name": entry} if isinstance(entry, str) else entry for entry in entries]

    @field_validator("encoder", mode="before")
    @classmethod
    def _name_alone_is_a_choice(cls, choice: Any) -> Any:
        return {"name": choice} if isinstance(choice, str) else choice

    def changed(self, assignments: dict[str, Any]) -> Suite:
        """The suite with other values at dotted keys: `training.rounds`, `fedlsa.lam`, …"""
        raw = self.model_dump(exclude_unset=True)
        for key, value in assignments.items():
            _assign(raw, key, value)
        return validated(Suite, raw, f"suite '{self.suite}'")

    def with_methods(self, names: Iterable[str]) -> Suite:
        """The suite with these methods only; one that it does not have is added with its defaults."""
        entries = {entry.name: [e for e in self.methods if e.name == entry.name] for entry in self.methods}
        chosen = [entry for name in names for entry in entries.get(name, [MethodEntry(name=name)])]
        return self.model_copy(update={"methods": tuple(chosen)})


_SECTIONS = ("dataset", "partition", "encoder", "model", "training", "evaluation")


def _assign(raw: dict[str, Any], key: str, value: Any) -> None:
    if key == "encoder" and isinstance(value, str):
        key = "encoder.name"
    section, _, rest = key.partition(".")
    if section in _SECTIONS and not rest and isinstance(value, dict):
        raw[section] = value
        return
    entries = [entry for entry in raw["methods"] if entry["name"] == section]
    if not rest or not (entries or section in _SECTIONS):
        known = [*_SECTIONS, *(entry["name"] for entry in raw["methods"])]
        hint = f"write {section}.KEY" if section in known else nearest(section, known)
        raise UserError(
            f"cannot set '{key}': it must begin with a method or a section of the suite and a dot; {hint}"
        )
    for entry in entries:
        target = entry.setdefault("set", {})
        if rest.startswith("optimiser.") and not target.get("optimiser"):
            from bench.suite.methods import own_optimiser

            own = own_optimiser(entry["name"], {k: v for k, v in target.items() if k != "optimiser"})
            target["optimiser"] = dict(own or raw["training"]["optimiser"])
        _assign_within(target, key, value)
    if not entries:
        _assign_within(raw.setdefault(section, {}), key, value)


def _assign_within(target: dict[str, Any], key: str, value: Any) -> None:
    """Set what is behind the first part of the dotted key."""
    first, *outer, last = key.split(".")
    for depth, part in enumerate(outer, start=1):
        target = target.setdefault(part, {})
        if not isinstance(target, dict):
            whole = ".".join([first, *outer[:depth]])
            raise UserError(f"cannot set '{key}': '{part}' is a value and has no keys; set {whole}")
    target[last] = value


def suite_names() -> list[str]:
    return sorted(file.stem for file in SUITES.glob("*.yaml"))


def as_option(name: str) -> str:
    """What to write behind `--suite` for the suite of this name: a file, unless it ships with the harness."""
    return name if name in suite_names() else f"{name}.yaml"


def load_suite(name: str) -> Suite:
    """A suite that ships with the harness, by name, or the user's own, by the path of its YAML file."""
    file = Path(name) if name.endswith((".yaml", ".yml")) else SUITES / f"{name}.yaml"
    if not file.is_file():
        if file.parent == SUITES:
            raise UserError(f"unknown suite '{name}'; {nearest(name, suite_names())}")
        raise UserError(f"no suite file {file}; give the path of a YAML file or the name of a suite")
    raw = read_mapping(file, "keys such as suite, version and methods")
    return validated(Suite, raw, f"suite file {file.name}")


def parse_assignment(text: str) -> tuple[str, Any]:
    """`fedlsa.lam=0.7` → the key and the value, read as YAML."""
    key, equals, value = text.partition("=")
    if not (equals and key and value):
        raise UserError(f"--set {text}: expected KEY=VALUE, such as fedlsa.lam=0.7")
    try:
        return key, yaml.safe_load(value)
    except yaml.YAMLError:
        raise UserError(f"--set {text}: '{value}' is not a YAML value") from None
