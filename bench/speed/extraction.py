"""`bench speed --work extraction`: pictures per CPU second of an encoder, here and in a plain loop.

The plain loop is the network as its library gives it, in batches of eight, with as many threads inside every
operation as there are cores and a flush of the file after every batch. Each side has a process of its own, so
that how one uses memory does nothing for the other.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from bench.data.base import Split
from bench.encoders import LITE0, encoder_spec

PICTURES = 128
SIDE = 224
PLAIN_BATCH = 8


def measured(repeats: int) -> dict[str, list[float]]:
    """Side → pictures per CPU second of every repetition, on all cores; taken in turn."""
    sides: dict[str, Callable[[], float]] = {"plain loop": _plain_loop, "in parallel": _in_parallel}
    rates: dict[str, list[float]] = {side: [] for side in sides}
    context = get_context("spawn")
    with ProcessPoolExecutor(1, context) as one, ProcessPoolExecutor(1, context) as other:
        processes = dict(zip(sides, (one, other), strict=True))
        for side, function in sides.items():
            processes[side].submit(function).result()  # loads the weights
        for _ in range(repeats):
            for side, function in sides.items():
                rates[side].append(processes[side].submit(function).result())
    return rates


def _plain_loop() -> float:
    from bench.encoders.loading import load_encoder

    encoder, pictures = load_encoder(encoder_spec(LITE0), "cpu", fold=False), _pictures()
    with tempfile.TemporaryDirectory() as folder:
        shape = (PICTURES, encoder.width())
        target = np.lib.format.open_memmap(Path(folder, "plain.npy"), "w+", np.float32, shape)
        started = time.process_time()
        for start in range(0, PICTURES, PLAIN_BATCH):
            rows = slice(start, start + PLAIN_BATCH)
            target[rows] = encoder(pictures[rows])
            target.flush()
        return PICTURES / (time.process_time() - started)


def _in_parallel() -> float:
    from bench.encoders.extraction import extracted
    from bench.encoders.loading import load_encoder

    encoder, pictures = load_encoder(encoder_spec(LITE0), "cpu"), _pictures()
    split = Split(pictures, np.zeros(PICTURES, np.int64))
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        extracted(
            encoder, {"all": split}, Path(folder, "all"), np.dtype(np.float32), lambda done, total: None
        )
        return PICTURES / (time.process_time() - started)


def _pictures() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (PICTURES, 3, SIDE, SIDE), np.uint8)
