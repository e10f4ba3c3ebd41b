"""Datasets by name, a user's own data, and the clients that they are divided among."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.data.choice import DatasetChoice, from_arrays, from_folder, from_npz
from bench.registry import Registry

if TYPE_CHECKING:
    from bench.data.base import Dataset, DatasetSpec

__all__ = [
    "DatasetChoice",
    "dataset_names",
    "dataset_spec",
    "dataset_summaries",
    "from_arrays",
    "from_folder",
    "from_npz",
    "load_dataset",
    "registry",
    "spec_of_section",
]


def _spec_class() -> type[DatasetSpec]:
    from bench.data.base import DatasetSpec

    return DatasetSpec


registry: Registry[DatasetSpec] = Registry("bench.data.datasets", "bench.datasets", "dataset", _spec_class)


def dataset_names() -> list[str]:
    return registry.names()


def dataset_summaries() -> dict[str, str]:
    """Name → a one-line description; imports none of the datasets."""
    return registry.summaries()


def dataset_spec(name: str, options: Mapping[str, Any], root: Path | None = None) -> DatasetSpec:
    """The checked options of a dataset; own data are looked for below `root`, or else $BENCH_DATA_ROOT."""
    from bench.data.base import data_root
    from bench.validation import validated

    spec = validated(registry.load(name), options, where=f"dataset '{name}'")
    return spec.identified(root or data_root())


def spec_of_section(section: Mapping[str, Any], root: Path | None = None) -> DatasetSpec:
    """The checked options of a suite's section `dataset`, which has the dataset's name among them."""
    if "name" not in section:
        from bench.errors import UserError

        raise UserError("dataset: key 'name' is missing; give it a value")
    options = {key: value for key, value in section.items() if key != "name"}
    return dataset_spec(str(section["name"]), options, root)


def load_dataset(
    name: str, options: Mapping[str, Any], root: Path | None = None, cache: Path | None = None
) -> Dataset:
    """The arrays of a dataset, made once from the files below `root` and memory-mapped from the cache.

    `root` defaults to $BENCH_DATA_ROOT, `cache` to $BENCH_CACHE or ~/.cache/fl-bench.
    """
    from bench.data import cache as cache_module
    from bench.data.base import data_root

    spec = dataset_spec(name, options, root)
    return cache_module.load(name, spec, root or data_root(), cache or cache_module.cache_root())
