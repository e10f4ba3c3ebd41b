"""Embeddings of a whole dataset: computed once, resumable, and shared by all processes through memory maps.

A finished entry has its manifest, written last. An unfinished one lies beside it under another name, with
the number of rows that are safe on disk; a killed process loses a few seconds of work. Batches do not depend
on where an extraction is taken up again, so its bytes are those of an uninterrupted one on the same device.
"""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bench.data.base import Dataset, Split
from bench.data.cache import MANIFEST, array_checksum, intact_manifest
from bench.data.language_models import MINILM, vocabulary_digest
from bench.encoders import EncoderSpec
from bench.encoders.entries import digest, sole_worker
from bench.encoders.progress import Report, reporting
from bench.encoders.weights import weights_checksum
from bench.errors import UserError
from bench.records.checksums import with_checksum
from bench.records.files import write_json

LAYOUT = 1
PREPROCESSING = 2
"""Raised when pictures become other inputs than before, so that cached embeddings are not used again."""


def embed(
    dataset: Dataset,
    encoder: EncoderSpec,
    cache_root: Path,
    device: str = "cpu",
    progress: Report | None = None,
    stored: Literal["float32", "float16"] = "float32",
) -> Dataset:
    """The dataset with (N, D) embeddings in place of its pictures or texts, in float32 or in half the space.

    The first process to ask computes them, others wait for it; weights and libraries are needed only then.
    The new checksum follows from the data's, the encoder, the weights and the preprocessing. Without
    `progress`, a bar is shown where there is a terminal, and lines are printed where there is none.
    """
    _check_inputs(dataset, encoder)
    identity = _identity(dataset, encoder, cache_root, stored)
    checksum = digest(identity)
    entry = _entry(dataset, encoder, cache_root, checksum)
    if intact_manifest(entry) is None:
        with sole_worker(entry, f"embeddings of {dataset.name} by {encoder.name}"):
            if intact_manifest(entry) is None:
                _extract(dataset, encoder, entry, identity, device, progress, stored)
    return _opened(dataset, entry, checksum)


def is_embedded(dataset: Dataset, encoder: EncoderSpec, cache_root: Path, stored: str) -> bool:
    """Whether the embeddings are in the cache, so that `embed` has nothing to compute."""
    checksum = digest(_identity(dataset, encoder, cache_root, stored))
    return intact_manifest(_entry(dataset, encoder, cache_root, checksum)) is not None


def blank(dataset: Dataset, encoder: EncoderSpec) -> Dataset:
    """The dataset with zeros in place of embeddings that have not been computed, to check a model against.

    The encoder is loaded for it, and refuses what it cannot read.
    """
    from bench.encoders.loading import load_encoder

    _check_inputs(dataset, encoder)
    zeros = np.zeros((1, load_encoder(encoder, "cpu").width()), np.float32)

    def embedded(splits: dict[str, Split]) -> dict[str, Split]:
        return {
            domain: Split(np.broadcast_to(zeros, (len(split), zeros.shape[1])), split.y)
            for domain, split in splits.items()
        }

    return replace(dataset, train=embedded(dataset.train), test=embedded(dataset.test), vocabulary="")


def _identity(dataset: Dataset, encoder: EncoderSpec, cache_root: Path, stored: str) -> dict[str, Any]:
    """What embeddings depend on."""
    return {
        "layout": LAYOUT,
        "data": dataset.checksum,
        "encoder": f"{encoder.library}:{encoder.model}",
        "weights": weights_checksum(encoder, cache_root),
        "preprocessing": PREPROCESSING,
        **({"stored": stored} if stored != "float32" else {}),
    }


def _entry(dataset: Dataset, encoder: EncoderSpec, cache_root: Path, checksum: str) -> Path:
    return cache_root / "embeddings" / f"{dataset.name}-{encoder.model}-{checksum[:16]}"


def _check_inputs(dataset: Dataset, encoder: EncoderSpec) -> None:
    """A UserError if the dataset holds what the encoder cannot read."""
    pictures = all(split.x.ndim == 4 for split in dataset.train.values())
    held = "pictures" if pictures else "texts" if dataset.vocabulary else "vectors"
    if held != encoder.reads:
        remedy = {
            "pictures": "choose an encoder of pictures",
            "texts": f"use the encoder {MINILM}",
            "vectors": "leave the encoder out",
        }
        raise UserError(
            f"dataset '{dataset.name}' holds {held} and encoder '{encoder.name}' needs {encoder.reads}; "
            f"{remedy[held]}"
        )
    if held == "texts" and dataset.vocabulary != vocabulary_digest(encoder.model):
        raise UserError(
            f"dataset '{dataset.name}' has the tokens of another language model than encoder "
            f"'{encoder.name}' reads; set dataset.tokenizer to {encoder.model}"
        )


def _extract(
    dataset: Dataset,
    spec: EncoderSpec,
    entry: Path,
    identity: dict[str, Any],
    device: str,
    progress: Report | None,
    stored: str,
) -> None:
    """Fill the arrays of the partial entry from where it stands, then move it into place."""
    from bench.encoders.extraction import extracted
    from bench.encoders.loading import load_encoder

    encoder = load_encoder(spec, device)
    partial = entry.with_name(f"{entry.name}.partial")
    with reporting(progress, f"{dataset.name} by {spec.name}") as report:
        arrays, setup = extracted(encoder, _splits(dataset), partial, np.dtype(stored), report)
    sums = {
        file: {"sha256": array_checksum(array), "bytes": (partial / file).stat().st_size}
        for file, array in arrays.items()
    }
    write_json(partial / MANIFEST, with_checksum({**identity, **setup, **encoder.settings(), "arrays": sums}))
    shutil.rmtree(entry, ignore_errors=True)  # a damaged one
    partial.replace(entry)


def _splits(dataset: Dataset) -> dict[str, Split]:
    """File of embeddings → pictures, in the order of work."""
    return {
        f"{domain}.{part}.npy": splits[domain]
        for domain in dataset.domains
        for part, splits in (("train", dataset.train), ("test", dataset.test))
    }


def _opened(dataset: Dataset, entry: Path, checksum: str) -> Dataset:
    def embedded(part: str, splits: dict[str, Split]) -> dict[str, Split]:
        return {
            domain: Split(np.load(entry / f"{domain}.{part}.npy", mmap_mode="r"), split.y)
            for domain, split in splits.items()
        }

    return replace(
        dataset,
        train=embedded("train", dataset.train),
        test=embedded("test", dataset.test),
        checksum=checksum,
        vocabulary="",
    )
