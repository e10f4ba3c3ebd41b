"""The global models of several cells, judged at once on the samples that they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.engine.evaluation import Judged, Judging
from bench.engine.hosts.joint import JointAnswers
from bench.engine.hosts.seeds import without_seed
from bench.engine.hosts.servers import StackedServers
from methods.core.batches import PIECE, Samples


def joint_judging() -> JointAnswers[Judging, list[Judged]]:
    """For models with the same samples, from cells that are trained as one stack."""
    return JointAnswers(lambda model: tuple(id(samples.x) for samples in model.sets), judged_together)


def judged_together(models: Sequence[Judging]) -> list[list[Judged]]:
    """What each says by itself; raises an exception if a method's predictions cannot be stacked."""
    problem = models[0].problem
    task = problem.task
    if len({model.problem.task.seed for model in models}) > 1:
        task = without_seed(task)
    servers = StackedServers(models)

    def on(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        """Predicted classes, and where losses are recorded their sum, model by model."""

        def of_one(*own: Tensor) -> tuple[Tensor, ...]:
            setting, state = servers.one(own)
            scores = setting.method.predict(task, state, None, x)
            losses = [F.cross_entropy(scores, y, reduction="sum")] if task.records_losses else []
            return scores.argmax(dim=1), *losses

        found: tuple[Tensor, ...] = servers.stack.mapped(of_one)
        return found

    with problem.task.evaluation():
        by_set = [_model_by_model(on, samples) for samples in models[0].sets]
    return [list(of_model) for of_model in zip(*by_set, strict=True)]


def _model_by_model(on: Callable[[Tensor, Tensor], tuple[Tensor, ...]], samples: Samples) -> list[Judged]:
    pieces = zip(samples.x.split(PIECE), samples.y.split(PIECE), strict=True)
    classes, *losses = zip(*(on(x, y) for x, y in pieces), strict=True)
    guesses = torch.cat(classes, dim=1).unbind(0)
    if not losses:
        return [Judged(each, None) for each in guesses]
    sums = torch.stack(losses[0]).sum(dim=0).tolist()
    return [Judged(each, total / len(samples.y)) for each, total in zip(guesses, sums, strict=True)]
