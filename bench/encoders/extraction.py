"""Samples through an encoder into arrays on disk: on all cores, resumable, and in the same bytes every time.

Every core has a thread that takes a batch through the whole network by itself. So no thread waits for
another inside an operation, which on a busy machine costs ten times the work itself, and the bytes do not
depend on how many cores there are.
"""

from __future__ import annotations

import shutil
import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from bench.data.base import Split
from bench.encoders.loading import Encoder
from bench.encoders.progress import Report
from bench.encoders.sentences import SentenceEncoder
from bench.errors import UserError
from bench.records.files import read_json, write_json
from bench.startup.memory import keep_freed_memory, return_freed_memory

BATCH = {"cpu": 16, "cuda": 256}
"""Pictures that go through the network together."""
TEXTS = 512
"""Texts of a batch; the encoder sorts them by length."""
SECONDS_TO_LOSE = 5.0
"""How much work a kill can lose: the state is written when so many seconds have passed."""
STATE = "progress.json"


class Piece(NamedTuple):
    """One batch: rows of a split, and how many samples are done after it."""

    file: str
    start: int
    end: int
    done: int


def extracted(
    encoder: Encoder | SentenceEncoder,
    splits: Mapping[str, Split],
    folder: Path,
    stored: np.dtype[Any],
    report: Report,
) -> tuple[dict[str, np.memmap], dict[str, Any]]:
    """Name of a file → the embeddings in it, and how they were made; continues what a killed process began.

    A state in the folder says how many rows are safe on disk.
    """
    pictures = isinstance(encoder, Encoder)
    batch = BATCH.get(encoder.device.type, BATCH["cpu"]) if pictures else TEXTS
    setup = {"batch": batch, "precision": str(encoder.precision)}
    taken_up = _taken_up(folder, setup, splits, stored)
    arrays, done = taken_up or _begun(folder, setup, splits, encoder.width(), stored)
    total = sum(len(split) for split in splits.values())
    report(done, total)
    saved, unsaved = time.monotonic(), set()
    for piece, rows in _computed(encoder, splits, batch, done):
        arrays[piece.file][piece.start : piece.end] = rows
        unsaved.add(piece.file)
        if time.monotonic() - saved >= SECONDS_TO_LOSE or piece.done == total:
            for file in unsaved:
                arrays[file].flush()
            write_json(folder / STATE, {**setup, "done": piece.done})
            saved, unsaved = time.monotonic(), set()
        report(piece.done, total)
    return arrays, setup


def _computed(
    encoder: Encoder | SentenceEncoder, splits: Mapping[str, Split], batch: int, done: int
) -> Iterator[tuple[Piece, np.ndarray]]:
    """The pieces that are left with their embeddings, in order; a few are read and computed ahead."""
    on_cpu = encoder.device.type == "cpu"
    threads = torch.get_num_threads()
    workers = threads if on_cpu else 2  # one reads while the other keeps the device busy
    keep_freed_memory(share_between_threads=True)

    def compute(piece: Piece) -> np.ndarray:
        return encoder(np.array(splits[piece.file].x[piece.start : piece.end]))

    waiting: deque[tuple[Piece, Future[np.ndarray]]] = deque()
    with ThreadPoolExecutor(workers, initializer=_use_one_thread if on_cpu else None) as pool:
        try:
            for piece in _pieces(splits, batch, done):
                waiting.append((piece, pool.submit(compute, piece)))
                if len(waiting) > 2 * workers:
                    first, rows = waiting.popleft()
                    yield first, rows.result()
            for last, rows in waiting:
                yield last, rows.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            torch.set_num_threads(threads)  # for threads that start later
    return_freed_memory()


def _use_one_thread() -> None:
    """The number of threads inside an operation is a setting of the thread that calls it."""
    torch.set_num_threads(1)


def _pieces(splits: Mapping[str, Split], batch: int, done: int) -> Iterator[Piece]:
    before = 0
    for file, split in splits.items():
        for start in range(0, len(split), batch):
            end = min(start + batch, len(split))
            if before + end > done:
                yield Piece(file, start, end, before + end)
        before += len(split)


def _begun(
    folder: Path, setup: dict[str, Any], splits: Mapping[str, Split], width: int, stored: np.dtype[Any]
) -> tuple[dict[str, np.memmap], int]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    arrays = {
        file: np.lib.format.open_memmap(folder / file, "w+", stored, (len(split), width))
        for file, split in splits.items()
    }
    write_json(folder / STATE, {**setup, "done": 0})
    return arrays, 0


def _taken_up(
    folder: Path, setup: dict[str, Any], splits: Mapping[str, Split], stored: np.dtype[Any]
) -> tuple[dict[str, np.memmap], int] | None:
    """The arrays of a killed process and how many rows they hold, if it worked in the same way."""
    try:
        state = read_json(folder / STATE)
        if {**state, "done": 0} != {**setup, "done": 0}:
            return None
        arrays = {file: np.load(folder / file, mmap_mode="r+") for file in splits}
        done = int(state["done"])
    except (UserError, OSError, ValueError, KeyError, TypeError):
        return None
    return (arrays, done) if all(array.dtype == stored for array in arrays.values()) else None
