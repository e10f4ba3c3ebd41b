"""The configuration of a cell: what a suite plans, a worker trains and a record keeps, as one object."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from bench.config.config_base import Count, Section, is_none, is_zero
from bench.config.names import FolderName, MethodName, Natural
from bench.config.training import Training

SCHEMA: Final = 1
"""The version of the record format; a reader refuses any other."""

SECTIONS: Final = (
    "dataset",
    "partition",
    "unseen",
    "attackers",
    "encoder",
    "model",
    "training",
    "evaluation",
)
"""The sections that a suite sets for all of its methods, in the order of the file."""


def _is_float32(value: object) -> bool:
    return value == "float32"


class Choice(BaseModel):
    """Something chosen by name, with the options of that name: a dataset, a partition or a model."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str

    @property
    def options(self) -> dict[str, Any]:
        """Everything but the name."""
        return dict(self.model_extra or {})


def _share_or_number(value: object) -> object:
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    if not (whole or (isinstance(value, float) and 0 < value < 1)):
        raise ValueError("give a number of clients, or a share of them between 0 and 1")
    return value


class Unseen(Section):
    """What no client trains on, and every model is tested on instead of the test sets of all domains."""

    domain: str | None = Field(default=None, exclude_if=is_none)
    """The domain whose samples no client has. The test set is that of this domain."""
    clients: Annotated[int | float | None, BeforeValidator(_share_or_number)] = Field(
        default=None, exclude_if=is_none
    )
    """How many clients never train, as a number or a share of all. The seed draws them, from every domain
    where each client has one domain. A domain's test set then has only the samples like these clients' own
    data (those that `evaluation.personal` measures a client on), each of them once."""

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Unseen:
        if (self.domain is None) == (self.clients is None):
            raise ValueError("give the key 'domain' or the key 'clients', and not both")
        return self


class Attackers(Section):
    """Clients that do not play by the rules; the seed draws them. Exchanges before round 1 are honest."""

    kind: Literal["sign_flip", "noise", "label_flip"]
    """What they do. `sign_flip`: send x − scale·(y − x) instead of y, where x is what the server sent (and
    −scale·y where the server sends nothing of the kind); `noise`: add normal noise to all that they send;
    `label_flip`: train on the label C − 1 − y instead of y, with C classes."""
    share: float = Field(gt=0, lt=1)
    """Their share of the clients, rounded to a whole number of at least one."""
    scale: float = Field(default=1.0, gt=0)
    """The factor of `sign_flip`, or the standard deviation of `noise`."""

    @model_validator(mode="after")
    def _scale_has_a_meaning(self) -> Attackers:
        if self.kind == "label_flip" and self.scale != 1:
            raise ValueError("flipped labels have no scale; leave out 'scale'")
        return self


class Evaluation(Section):
    """When and on what the models are measured."""

    every: Count = 5
    """Rounds between two evaluations; the last five rounds are always evaluated."""
    personal: bool = False
    """Whether every client is also measured on its own kind of data."""
    test: bool = Field(default=True, exclude_if=bool)
    """Whether the test sets are read at all; a search leaves them alone."""
    losses: bool = Field(default=False, exclude_if=is_zero)
    """Whether losses are recorded too: on the test sets, and the terms of the clients' training losses."""


class EncoderChoice(Section):
    """The frozen network that turns pictures or texts into features before anything is trained."""

    name: str
    normalised: bool = False
    """Whether features are scaled to length 1."""
    stored: Literal["float32", "float16"] = Field(default="float32", exclude_if=_is_float32)
    """The numbers in the cache of features; float16 takes half the space and has three to four digits."""


class SuiteReference(Section):
    """The suite that a cell belongs to."""

    name: FolderName
    version: int


class MethodChoice(Section):
    """A method with all of its hyperparameters filled in."""

    name: MethodName
    version: int
    hyperparameters: dict[str, Any]
    source: str | None = Field(default=None, exclude_if=is_none)
    """Digest of the source of a method that is not installed: one from a file, a script or a notebook."""


class CellConfig(Section):
    """One run of one method at one seed. Its identity, `cell_id`, is the hash of everything else here."""

    model_config = ConfigDict(populate_by_name=True)

    cell_id: str = Field(alias="cell")
    schema_version: int = Field(default=SCHEMA, alias="schema")
    suite: SuiteReference
    variant: str
    dataset: Choice
    partition: Choice
    unseen: Unseen | None = Field(default=None, exclude_if=is_none)
    attackers: Attackers | None = Field(default=None, exclude_if=is_none)
    encoder: EncoderChoice | None = Field(default=None, exclude_if=is_none)
    model: Choice
    training: Training
    evaluation: Evaluation
    method: MethodChoice
    seed: Natural

    @classmethod
    def identified(cls, **sections: Any) -> CellConfig:
        """The configuration made of these sections, named by their hash."""
        unnamed = cls(cell_id="", **sections)
        return unnamed.model_copy(update={"cell_id": identity(unnamed.identifying())})

    def replaced(self, **sections: Any) -> CellConfig:
        """The same configuration with other sections, and so with another identity."""
        parts = {name: getattr(self, name) for name in type(self).model_fields if name != "cell_id"}
        return self.identified(**parts | sections)

    def as_record(self) -> dict[str, Any]:
        """What config.json holds."""
        return self.model_dump(mode="json", by_alias=True)

    def identifying(self) -> dict[str, Any]:
        """What the identity is a hash of."""
        return self.model_dump(mode="json", by_alias=True, exclude={"cell_id"})

    @property
    def directory(self) -> str:
        """The cell's folder, relative to that of its run."""
        return f"cells/{re.sub(r'[^a-z0-9_+]', '-', self.method.name)}-s{self.seed}-{self.cell_id}"

    @property
    def workload(self) -> str:
        """Equal for cells that train the same model on the same data, whatever their method and seed."""
        return identity(self.model_dump(mode="json", include=_WORKLOAD))

    @property
    def setting(self) -> str:
        """Equal for a search and a run if hyperparameters chosen in the one are meant for the other."""
        left_out = {"training": {"rounds", "validation", "early_stop"}}
        return identity(
            {"encoder": None, **self.model_dump(mode="json", include=_WORKLOAD, exclude=left_out)}
        )

    @property
    def stack(self) -> str:
        """Equal for cells that differ in hyperparameters and seed alone."""
        content = self.model_dump(
            mode="json", exclude={"cell_id": True, "seed": True, "method": {"hyperparameters": True}}
        )
        return identity(content)

    @property
    def without_method(self) -> str:
        """Equal for cells that differ in their method alone."""
        return identity(self.model_dump(mode="json", exclude={"cell_id", "method"}))


_WORKLOAD = {"dataset", "partition", "unseen", "attackers", "encoder", "model", "training"}


def identity(content: Mapping[str, Any]) -> str:
    """The first 16 digits of the SHA-256 of the canonical JSON text."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
