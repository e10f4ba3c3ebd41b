"""Accuracies of the global model and of the clients' own models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.engine.problem import Problem
from methods.base import State
from methods.core.batches import PIECE, Samples


class Scores(NamedTuple):
    """Accuracies of one model."""

    test: dict[str, float]
    """Domain → accuracy; of clients' own models only if there is no global one."""
    own: float | None
    validation: float | None
    by_others: dict[str, float]
    """Name of another way to predict → its mean accuracy over the test sets."""
    right: dict[str, Tensor]
    """Domain → whether the prediction is right, sample by sample; where `test` has an accuracy."""
    losses: dict[str, float]
    """Domain → mean cross-entropy, where losses are recorded and `test` has an accuracy."""


def score(problem: Problem, server: State, state: State | None, client: int) -> Scores:
    """The accuracies that a client gets with this state (None: with the global model)."""
    held_out = problem.validation.get(client)
    validation = None if held_out is None else fraction(correct(problem, server, state, held_out))
    if problem.method.has_global_model:
        # A client's own model is then judged on data like its own alone.
        alike = [
            Samples(*(part[positions] for part in problem.test[domain]))
            for domain, positions in problem.own_test.get(client, {}).items()
        ]
        hits = [correct(problem, server, state, samples) for samples in alike]
        own = fraction(torch.cat(hits)) if hits else None
        return Scores(test={}, own=own, validation=validation, by_others={}, right={}, losses={})
    found = {domain: predicted(problem, server, state, samples) for domain, samples in problem.test.items()}
    right = {domain: classes == problem.test[domain].y for domain, (classes, _) in found.items()}
    return Scores(
        test={domain: fraction(hits) for domain, hits in right.items()},
        own=own_accuracy(problem, right, client) if problem.own_test.get(client) else None,
        validation=validation,
        by_others=scores_by_others(problem, server, state),
        right={domain: hits.cpu() for domain, hits in right.items()},
        losses={domain: loss for domain, (_, loss) in found.items() if loss is not None},
    )


def scores_by_others(problem: Problem, server: State, state: State | None) -> dict[str, float]:
    return {
        name: fmean(fraction(correct(other, server, state, samples)) for samples in problem.test.values())
        for name, other in with_other_predictions(problem).items()
    }


def with_other_predictions(problem: Problem) -> dict[str, Problem]:
    """Name of another way to predict → the problem with it; nothing where there are no test sets."""
    others = problem.method.other_predictions() if problem.test else {}
    return {name: replace(problem, method=method) for name, method in others.items()}


def own_accuracy(problem: Problem, right: Mapping[str, Tensor], client: int) -> float:
    hits = [right[domain][positions] for domain, positions in problem.own_test[client].items()]
    return fraction(torch.cat(hits))


def correct(problem: Problem, server: State, state: State | None, samples: Samples) -> Tensor:
    """Whether the prediction is right, sample by sample."""
    classes, _ = predicted(problem, server, state, samples)
    return classes == samples.y


def predicted(
    problem: Problem, server: State, state: State | None, samples: Samples
) -> tuple[Tensor, float | None]:
    """The class of every sample and, where losses are recorded, the mean cross-entropy of the scores."""
    task, method = problem.task, problem.method
    classes, losses = [], []
    with task.evaluation():
        for x, y in zip(samples.x.split(PIECE), samples.y.split(PIECE), strict=True):
            scores = method.predict(task, server, state, x)
            classes.append(scores.argmax(dim=1))
            if task.records_losses:
                losses.append(F.cross_entropy(scores, y, reduction="sum"))
    loss = float(torch.stack(losses).sum()) / len(samples.y) if losses else None
    return torch.cat(classes), loss


def fraction(hits: Tensor) -> float:
    return int(hits.sum()) / len(hits)
