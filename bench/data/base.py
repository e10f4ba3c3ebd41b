"""What a dataset is: arrays by domain, and the specification that makes them."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from bench.errors import UserError


def spread_evenly(count: int, limit: int | None) -> np.ndarray:
    """The positions of at most `limit` of `count` samples."""
    return np.arange(count) if limit is None or limit >= count else np.arange(limit) * count // limit


@dataclass(frozen=True)
class Split:
    """Inputs and labels: x is uint8 (N, 3, H, W) for images, float32 (N, D) for vectors and int32 (N, T) for
    the tokens of texts; y is int64 (N,)."""

    x: np.ndarray
    y: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    def thinned(self, limit: int | None) -> Split:
        """At most `limit` samples, spread evenly over the split."""
        if limit is None or limit >= len(self):
            return self
        positions = spread_evenly(len(self), limit)
        return Split(self.x[positions], self.y[positions])


@dataclass(frozen=True)
class Dataset:
    """A dataset in memory-mapped, read-only arrays; the order of the domains is fixed."""

    name: str
    classes: tuple[str, ...]
    train: dict[str, Split]
    test: dict[str, Split]
    checksum: str
    vocabulary: str = ""
    """Digest of the tokenizer that the tokens of texts come from; empty for pictures and vectors."""

    @property
    def domains(self) -> tuple[str, ...]:
        return tuple(self.train)


def normalised(dataset: Dataset) -> Dataset:
    """The dataset with every vector scaled to length 1."""

    def scaled(splits: dict[str, Split]) -> dict[str, Split]:
        return {
            domain: Split(x / np.linalg.norm(x, axis=1, keepdims=True).clip(1e-12), split.y)
            for domain, split in splits.items()
            for x in [np.asarray(split.x, np.float32)]
        }

    return replace(
        dataset,
        train=scaled(dataset.train),
        test=scaled(dataset.test),
        checksum=f"{dataset.checksum} normalised",
    )


def distinct(domains: tuple[str, ...]) -> tuple[str, ...]:
    """The names unchanged; a ValueError if a name is repeated."""
    if len(set(domains)) != len(domains):
        raise ValueError("a domain is named twice")
    return domains


class TrainTest(NamedTuple):
    train: Split
    test: Split


# Omitted if there is none, so that configurations without it keep their identity.
Limit = Annotated[int | None, Field(ge=1, exclude_if=lambda limit: limit is None)]
"""Maximum number of samples of each train and each test set, spread evenly over it."""


class DatasetSpec(BaseModel):
    """The options of a dataset, and how its arrays are made from the files a user has.

    A published dataset declares `classes` and `counts`. Where domains and classes are known from the files
    alone, `domain_names`, `class_names` and `identified` are overridden instead.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: ClassVar[int] = 1
    """Raised when the same files and options give different arrays, so that cached ones are not reused."""
    classes: ClassVar[tuple[str, ...]] = ()
    counts: ClassVar[Mapping[str, tuple[int, int] | None]] = {}
    """Domain → published sizes of train and test, None if several are in use; in the dataset's order."""
    origin: ClassVar[str] = "it is built in, so no files are needed"
    """Where a user gets the files, and where to put them."""

    def identified(self, root: Path | None) -> Self:
        """The same options, completed by what identifies the user's own files."""
        return self

    def domain_names(self) -> tuple[str, ...]:
        """The domains that these options select."""
        return tuple(self.counts)

    def published_sizes(self) -> Mapping[str, tuple[int, int] | None]:
        """Every domain of the dataset → its published sizes of train and test, None if there are none."""
        return self.counts

    def present_domains(self, root: Path | None) -> tuple[str, ...]:
        """The domains of the dataset whose files exist below the root."""
        return tuple(self.published_sizes())

    def place_of(self, path: Path) -> Path:
        """Where below the root the user's file or folder belongs."""
        raise UserError(f"{path} cannot be imported: {self.origin}")

    def class_names(self, root: Path | None) -> tuple[str, ...]:
        """The names of the labels 0, 1, …; some datasets have them in a file."""
        return self.classes

    def vocabulary(self) -> str:
        """For texts, the digest of the tokenizer that their tokens come from; else empty."""
        return ""

    @abstractmethod
    def fingerprint(self, root: Path | None) -> str:
        """Changes when the files below `root` change; a UserError if they are missing."""

    @abstractmethod
    def build(self, root: Path | None, domain: str) -> TrainTest:
        """Decode the files of one domain into arrays; a UserError names the file that is wrong."""


def data_root() -> Path | None:
    """The folder of the user's data, if $BENCH_DATA_ROOT is set."""
    value = os.environ.get("BENCH_DATA_ROOT")
    return Path(value).expanduser() if value else None
