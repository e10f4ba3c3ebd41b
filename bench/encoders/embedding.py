"""Embeddings of a whole dataset: computed once, resumable, and shared by all processes through memory maps.

A finished entry has its manifest, written last. An unfinished one lies beside it under another name, with
the number of rows that are safe on disk; a killed process loses the batch it was at. Batches do not depend
on where an extraction is taken up again, so its bytes are those of an uninterrupted one, if device and number
of threads are the same: both change the last bits of sums.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.data.base import Dataset, Split
from bench.data.cache import MANIFEST, array_checksum, intact_manifest
from bench.data.language_models import MINILM, vocabulary_digest
from bench.encoders import EncoderSpec
from bench.encoders.entries import digest, sole_worker
from bench.encoders.weights import weights_checksum
from bench.errors import UserError
from bench.records.files import read_json, write_json

LAYOUT = 1
PREPROCESSING = 2
"""Raised when pictures become other inputs than before, so that cached embeddings are not used again."""
BATCH = {"cpu": 8, "cuda": 256}
"""Pictures that a kill can lose, and after which progress is written."""
TEXTS = 512
"""The same for texts, which are sorted by length within so many."""
STATE = "progress.json"

Report = Callable[[int, int], None]
"""Takes the number of samples that are done and of all."""


def embed(
    dataset: Dataset,
    encoder: EncoderSpec,
    cache_root: Path,
    device: str = "cpu",
    progress: Report | None = None,
) -> Dataset:
    """The dataset with float32 (N, D) embeddings in place of its pictures or texts.

    The first process to ask computes them, others wait for it; weights and libraries are needed only then.
    The new checksum follows from the data's, the encoder, the weights and the preprocessing. Without
    `progress`, a bar is shown where there is a terminal.
    """
    _check_inputs(dataset, encoder)
    identity = {
        "layout": LAYOUT,
        "data": dataset.checksum,
        "encoder": f"{encoder.library}:{encoder.model}",
        "weights": weights_checksum(encoder, cache_root),
        "preprocessing": PREPROCESSING,
    }
    checksum = digest(identity)
    entry = cache_root / "embeddings" / f"{dataset.name}-{encoder.model}-{checksum[:16]}"
    if intact_manifest(entry) is None:
        with sole_worker(entry, f"embeddings of {dataset.name} by {encoder.name}"):
            if intact_manifest(entry) is None:
                _extract(dataset, encoder, entry, identity, device, progress)
    return _opened(dataset, entry, checksum)


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
) -> None:
    """Fill the arrays of the partial entry from where it stands, then move it into place."""
    from bench.encoders.loading import load_encoder

    encoder = load_encoder(spec, device)
    partial = entry.with_name(f"{entry.name}.partial")
    batch = TEXTS if spec.reads == "texts" else BATCH.get(encoder.device.type, BATCH["cpu"])
    setup = {"batch": batch, "precision": str(encoder.precision)}
    arrays, done = _taken_up(partial, setup, dataset) or _begun(partial, setup, dataset, encoder.width())
    total = sum(len(split) for split in _splits(dataset).values())
    with _reporting(progress, f"{dataset.name} by {spec.name}") as report:
        report(done, total)
        before = 0
        for file, split in _splits(dataset).items():
            target = arrays[file]
            for start in range(max(0, done - before), len(split), batch):
                rows = slice(start, start + batch)
                target[rows] = encoder(np.array(split.x[rows]))
                target.flush()
                done = before + min(start + batch, len(split))
                write_json(partial / STATE, {**setup, "done": done})
                report(done, total)
            before += len(split)
    sums = {
        file: {"sha256": array_checksum(array), "bytes": (partial / file).stat().st_size}
        for file, array in arrays.items()
    }
    write_json(partial / MANIFEST, {**identity, **setup, **encoder.settings(), "arrays": sums})
    shutil.rmtree(entry, ignore_errors=True)  # a damaged one
    partial.replace(entry)


def _splits(dataset: Dataset) -> dict[str, Split]:
    """File of embeddings → pictures, in the order of work."""
    return {
        f"{domain}.{part}.npy": splits[domain]
        for domain in dataset.domains
        for part, splits in (("train", dataset.train), ("test", dataset.test))
    }


def _begun(
    partial: Path, setup: dict[str, Any], dataset: Dataset, width: int
) -> tuple[dict[str, np.memmap], int]:
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    arrays = {
        file: np.lib.format.open_memmap(partial / file, "w+", np.float32, (len(split), width))
        for file, split in _splits(dataset).items()
    }
    write_json(partial / STATE, {**setup, "done": 0})
    return arrays, 0


def _taken_up(
    partial: Path, setup: dict[str, Any], dataset: Dataset
) -> tuple[dict[str, np.memmap], int] | None:
    """The arrays of a killed process and how many rows they hold, if it worked in the same way."""
    try:
        state = read_json(partial / STATE)
        if {**state, "done": 0} != {**setup, "done": 0}:
            return None
        arrays = {file: np.load(partial / file, mmap_mode="r+") for file in _splits(dataset)}
        return arrays, int(state["done"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextmanager
def _reporting(progress: Report | None, title: str) -> Iterator[Report]:
    """The caller's report, or else a bar where there is a terminal to show it."""
    if progress is not None:
        yield progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("embeddings of {task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(title)
        yield lambda done, total: bar.update(task, completed=done, total=total)


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
