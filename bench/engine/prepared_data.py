"""The arrays that a cell is trained and tested on: read from disk, and embedded where it has an encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bench.config.cell import CellConfig, EncoderChoice, identity
from bench.data import dataset_spec, load_dataset
from bench.data.base import Dataset, Split, normalised
from bench.data.cache import cache_root
from bench.data.manage import deviations
from bench.encoders import encoder_spec


@dataclass(frozen=True)
class PreparedData:
    """A dataset, and how it differs from what was published."""

    dataset: Dataset
    notes: tuple[str, ...]

    def embedded(self, encoder: EncoderChoice, device: str = "cpu") -> PreparedData:
        """With the encoder's features in place of pictures or texts."""
        from bench.encoders.embedding import embed

        found = embed(
            self.dataset, encoder_spec(encoder.name), cache_root(), device=device, stored=encoder.stored
        )
        return replace(self, dataset=normalised(found) if encoder.normalised else found)

    def is_embedded(self, encoder: EncoderChoice) -> bool:
        """Whether the encoder's features are in the cache."""
        from bench.encoders.embedding import is_embedded

        return is_embedded(self.dataset, encoder_spec(encoder.name), cache_root(), encoder.stored)

    def blank(self, encoder: EncoderChoice) -> PreparedData:
        """With zeros in place of the encoder's features, none of which is computed."""
        from bench.encoders.embedding import blank

        return replace(self, dataset=blank(self.dataset, encoder_spec(encoder.name)))

    def in_memory(self) -> PreparedData:
        """With plain arrays, which Ray copies once and maps into every process, in place of mapped files."""

        def plain(splits: Mapping[str, Split]) -> dict[str, Split]:
            return {
                domain: Split(split.x.view(np.ndarray), split.y.view(np.ndarray))
                for domain, split in splits.items()
            }

        dataset = replace(self.dataset, train=plain(self.dataset.train), test=plain(self.dataset.test))
        return replace(self, dataset=dataset)


def read_data(config: CellConfig, data_root: Path | None) -> PreparedData:
    """The dataset of a cell as it is on disk."""
    dataset = load_dataset(config.dataset.name, config.dataset.options, data_root)
    spec = dataset_spec(config.dataset.name, config.dataset.options, data_root)
    return PreparedData(dataset, tuple(deviations(dataset, spec)))


def prepare(config: CellConfig, data_root: Path | None) -> PreparedData:
    """The data of a cell, ready for training."""
    data = read_data(config, data_root)
    return data if config.encoder is None else data.embedded(config.encoder)


def needs_extraction(config: CellConfig, data_root: Path | None) -> bool:
    """Whether a cell trains on features that have not been computed yet."""
    return config.encoder is not None and not read_data(config, data_root).is_embedded(config.encoder)


def data_key(config: CellConfig) -> str:
    """Equal for cells whose prepared data are the same."""
    return identity(config.model_dump(mode="json", include={"dataset", "encoder"}))
