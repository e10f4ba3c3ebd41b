"""How long a cell takes here: measured on a few real steps, then multiplied."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import torch

from bench.config.cell import CellConfig
from bench.engine.assembly import assemble
from bench.engine.prepared_data import needs_extraction
from bench.engine.problem import Problem
from methods.core.batches import Batch
from methods.core.losses import cross_entropy
from methods.core.tree import Tree

STEPS = 3


def encoders_to_apply(configs: Iterable[CellConfig], data_root: Path | None) -> str:
    """The encoders whose features these cells need and nobody has computed yet; empty if there are none."""
    waiting = [config for config in configs if needs_extraction(config, data_root)]
    return ", ".join(sorted({config.encoder.name for config in waiting if config.encoder}))


def cell_seconds(config: CellConfig, data_root: Path | None) -> float:
    """Local steps of the cell × the time of one step of its model at its batch size."""
    problem = assemble(config, data_root).problem
    batches = sum(-(-len(samples.y) // problem.batch_size) for samples in problem.train.values())
    steps = problem.steps * len(problem.train) if problem.steps else problem.epochs * batches
    per_round = steps * config.training.participation
    return _one_step(problem) * per_round * config.training.rounds


def _one_step(problem: Problem) -> float:
    largest = max(problem.train.values(), key=lambda samples: len(samples.y))
    batch = Batch(largest.x[: problem.batch_size], largest.y[: problem.batch_size])
    task = problem.task

    def loss(params: Tree, batch: Batch) -> torch.Tensor:
        return cross_entropy(task.logits(params, batch.x), batch)

    task.train(task.initial, loss, [batch])
    started = time.perf_counter()
    task.train(task.initial, loss, [batch] * STEPS)
    return (time.perf_counter() - started) / STEPS
