"""FedLSA's options for readings other than the default."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from bench.contract import check
from bench.engine.hosts.loop import LoopHost
from bench.engine.hosts.stacked import StackedHost
from methods.base import Batch
from methods.fedlsa import FedLSA, anchors_of
from tests.kit.tiny import CLASSES, HIDDEN, close, cnn_task, federation, mlp_task, nearby, samples
from tests.methods.test_fedlsa import IMAGE, QUICK, clients


def test_sgd_trains_the_anchors_as_torch_would() -> None:
    task = cnn_task()
    method = FedLSA(anchor_optimiser="sgd", server_steps=3, server_lr=0.5)
    maker = method.anchor_maker(task)
    leaves = {name: leaf.clone().requires_grad_() for name, leaf in maker.items()}
    optimiser = torch.optim.SGD(leaves.values(), lr=0.5)
    for _ in range(3):
        optimiser.zero_grad()
        anchors = anchors_of(type(maker)(leaves))
        method.anchor_loss(task, task.initial, anchors).backward()
        optimiser.step()
    found = method.renewed_anchors(task, task.initial, maker)["anchors"]
    torch.testing.assert_close(found, anchors_of(type(maker)(leaves)).detach(), rtol=0, atol=1e-6)
    adam = FedLSA(server_steps=3, server_lr=0.5).renewed_anchors(task, task.initial, maker)["anchors"]
    assert not torch.allclose(found, adam, atol=1e-3)


def test_without_the_projector_the_sphere_is_in_the_encoders_space() -> None:
    task, method = cnn_task(), FedLSA(use_projector=False, **QUICK)
    server = method.server(task)
    assert server["anchors"].shape == (CLASSES, HIDDEN)
    data, y = clients()[0], nearby(task.initial, 1)
    h = F.normalize(task.encode(y, data.x), dim=1)
    logits = task.classify(y, task.project(y, h))
    expected = F.cross_entropy(logits, data.y) + 0.7 * F.cross_entropy(h @ server["anchors"].T / 0.1, data.y)
    loss = method.objective(task, {}, method.down(task, server, 0))(y, Batch(data.x, data.y))
    assert float(loss) == pytest.approx(float(expected), rel=1e-5)
    torch.testing.assert_close(method.predict(task, {"model": y}, None, data.x), logits)


@pytest.mark.parametrize("kind", [LoopHost, StackedHost])
def test_a_projector_that_is_not_shared_stays_with_its_client(kind: Any) -> None:
    task = cnn_task()
    run, host = federation(FedLSA(share_projector=False, **QUICK), task, clients(), kind=kind)
    record = run.advance()
    model = task.initial.without([n for n in task.initial if n.startswith("projector.")])
    assert record["bytes_up"] == 3 * sum(leaf.nbytes for leaf in model.values())
    run.advance()
    own = [host.state(k)["projector"] for k in range(3)]
    assert not close(own[0], own[1], tolerance=1e-4)
    assert close(run.server["model"].only(own[0]), task.initial.only(own[0]), tolerance=0)
    x = samples([0, 1], seed=5, shape=IMAGE).x
    method = run.problem.method
    by_clients = [method.predict(task, run.server, host.state(k), x) for k in (0, 1)]
    assert not torch.allclose(*by_clients, atol=1e-4)


def test_a_model_without_a_projector_cannot_keep_one() -> None:
    with pytest.raises(ValueError, match="no projector"):
        FedLSA(share_projector=False).check(mlp_task())


def test_a_private_projector_keeps_the_contract() -> None:
    report = check("fedlsa", {"share_projector": False}, remember=False)
    assert report.passed, str(report)


def test_the_defaults_are_no_part_of_a_cells_name() -> None:
    dumped = FedLSA().model_dump(mode="json")
    assert not {"anchor_optimiser", "use_projector", "share_projector"} & set(dumped)
