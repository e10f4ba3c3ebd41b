"""FedLSA: the anchors, the two losses and the rows of the ablation."""

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from bench.contract import check
from methods.core.batches import Samples
from methods.fedavg import FedAvg
from methods.fedlsa import FedLSA, separation_loss
from methods.modules.split_model import SplitModel
from tests.kit.tiny import (
    CLASSES,
    close,
    cnn_task,
    federation,
    frozen_task,
    mlp_task,
    samples,
    server_after,
    task_of,
)

IMAGE = (1, 8, 8)
EMBEDDING = 4
QUICK: dict[str, Any] = {"server_steps": 5}


def clients() -> list[Samples]:
    return [
        samples([0, 1, 2, 0, 1, 2, 1], 1, IMAGE),
        samples([2, 2, 0, 1], 2, IMAGE),
        samples([0, 1], 3, IMAGE),
    ]


def simplex(classes: int) -> Tensor:
    """Unit vectors with the same angle between any two of them."""
    centred = torch.eye(classes, dtype=torch.float64) - 1 / classes
    return nn.functional.normalize(centred, dim=1)


# The anchors


def test_separation_of_a_simplex_of_ten_classes() -> None:
    anchors = simplex(10)
    assert float(anchors[0] @ anchors[1]) == pytest.approx(-1 / 9)
    assert float(separation_loss(anchors, tau=0.1)) == pytest.approx(-1.1111, abs=1e-4)


# The ablation


class _OnSphere(SplitModel):
    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(nn.functional.normalize(self.projector(self.encoder(x)), dim=-1))
        return logits


def test_neither_loss_is_fedavg_with_the_classifier_on_the_sphere() -> None:
    task = cnn_task()
    model = task.model
    on_sphere = _OnSphere(
        model.encoder,
        model.projector,
        model.classifier,
        feature_size=model.feature_size,
        embedding_size=model.embedding_size,
    )
    neither = FedLSA(compactness=False, separation=False)
    ours = server_after(2, neither, task, clients())
    theirs = server_after(2, FedAvg(), task_of(on_sphere), clients())
    assert list(ours) == ["model"]
    assert close(ours["model"], theirs["model"], tolerance=1e-6)


def test_without_separation_alpha_has_no_effect() -> None:
    task = cnn_task()
    with_it, without = (
        [FedLSA(alpha=alpha, separation=separation, **QUICK).server(task)["anchors"] for alpha in (0.02, 0.9)]
        for separation in (True, False)
    )
    assert torch.equal(*without)
    assert not torch.allclose(*with_it)


@pytest.mark.parametrize("compactness", [True, False])
@pytest.mark.parametrize("separation", [True, False])
def test_bytes_are_the_model_and_where_used_the_anchors(compactness: bool, separation: bool) -> None:
    task = cnn_task()
    run, _ = federation(FedLSA(compactness=compactness, separation=separation, **QUICK), task, clients())
    record = run.advance()
    model = 4 * sum(leaf.numel() for leaf in task.initial.values())
    anchors = 4 * CLASSES * EMBEDDING if compactness or separation else 0
    assert record["bytes_up"] == 3 * model
    assert record["bytes_down"] == 3 * (model + anchors)


def test_the_losses_of_the_anchors_are_recorded() -> None:
    run, _ = federation(FedLSA(**QUICK), cnn_task(), clients())
    metrics = run.advance()["metrics"]
    assert metrics["anchor_separation"] == pytest.approx(float(separation_loss(run.server["anchors"], 0.1)))
    assert sorted(metrics) == ["anchor_classification", "anchor_separation"]


@pytest.mark.parametrize(
    "wrong", [{"lam": -0.1}, {"alpha": -1}, {"tau": 0}, {"server_steps": -1}, {"server_lr": 0}]
)
def test_hyperparameters_out_of_bounds_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FedLSA(**wrong)


def test_a_model_without_anything_before_the_classifier_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing before the classifier is trained"):
        FedLSA().check(frozen_task())
    FedLSA(compactness=False, separation=False).check(frozen_task())


# Options


def test_a_projector_that_is_not_shared_does_not_travel() -> None:
    task = cnn_task()
    run, _ = federation(FedLSA(share_projector=False, **QUICK), task, clients())
    model = task.initial.without([name for name in task.initial if name.startswith("projector.")])
    assert run.advance()["bytes_up"] == 3 * sum(leaf.nbytes for leaf in model.values())


def test_a_model_without_a_projector_cannot_keep_one() -> None:
    with pytest.raises(ValueError, match="no projector"):
        FedLSA(share_projector=False).check(mlp_task())


def test_a_private_projector_keeps_the_contract() -> None:
    report = check("fedlsa", {"share_projector": False}, remember=False)
    assert report.passed, str(report)


def test_the_defaults_are_no_part_of_a_cells_name() -> None:
    dumped = FedLSA().model_dump(mode="json")
    assert not {"anchor_optimiser", "use_projector", "share_projector"} & set(dumped)
