"""Where a method's class anchors stand among the test samples, in two dimensions."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.engine.problem import Problem
from bench.records.files import write_atomically
from methods.core.batches import Samples

PER_DOMAIN = 100
"""Evenly spaced test samples per domain: enough to see the classes, and little work."""


def write_projection(file: Path, problem: Problem, server: dict[str, Any]) -> None:
    """Nothing is written for a method without anchors, for a model that diverged, or without a test set."""
    picked = [_evenly(samples) for samples in problem.test.values()]
    if not picked:
        return
    x, y = (torch.cat(parts) for parts in zip(*picked, strict=True))
    with problem.task.evaluation():
        found = problem.method.anchored(problem.task, server, x)
    if found is None:
        return
    embeddings, anchors = (part.detach().cpu().numpy() for part in found)
    vectors = np.concatenate([embeddings, anchors])
    if not np.isfinite(vectors).all():
        return
    flat = in_two_dimensions(vectors)
    packed = BytesIO()
    np.savez(packed, points=flat[: len(y)], labels=y.cpu().numpy(), anchors=flat[len(y) :])
    write_atomically(file, packed.getvalue())


def in_two_dimensions(vectors: np.ndarray) -> np.ndarray:
    """t-SNE, which keeps neighbours together: ten anchors, all far apart, do not fit into a plane."""
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(vectors) - 1) / 3)
    return np.asarray(TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(vectors))


def _evenly(samples: Samples) -> Samples:
    count = len(samples.y)
    at = torch.linspace(0, count - 1, min(PER_DOMAIN, count)).long().to(samples.y.device)
    return Samples(samples.x[at], samples.y[at])
