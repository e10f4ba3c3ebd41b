"""FedProto's other readings: what is pulled, by which distance, in which space, and how means are taken."""

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bench.engine.hosts.loop import LoopHost
from bench.engine.hosts.stacked import StackedHost
from methods.base import Batch
from methods.fedproto import FedProto
from methods.fedproto_avg import FedProtoAvg
from tests.kit.tiny import HIDDEN, a_batch, close, federation, frozen_task, mlp_task, nearby, uneven_clients
from tests.methods.test_prototypes import REPLIES, a_message, added, client_reply, features

Kind: TypeAlias = type[FedProto] | type[FedProtoAvg]
both = pytest.mark.parametrize("kind", [FedProto, FedProtoAvg])
DATA = uneven_clients()[0]


@both
def test_without_the_square_the_pull_is_the_root(kind: Kind) -> None:
    task, y = mlp_task(), nearby(mlp_task().initial, 1)
    message = a_message(task, [1.0, 1.0, 0.0])
    z, p = features(task, y, DATA.x), message["prototypes"].numpy()
    pulls = [
        np.sqrt(((row - p[c]) ** 2).mean()) if c < 2 else 0.0
        for row, c in zip(z, DATA.y.tolist(), strict=True)
    ]
    found = added(kind(lam=0.7, squared=False), task, message, y, DATA)
    assert found == pytest.approx(0.7 * np.mean(pulls), abs=1e-6)


@both
def test_pulled_prototypes_are_the_class_means_of_the_batch(kind: Kind) -> None:
    """The mean over the two classes that the batch and the server both have."""
    task, y = mlp_task(), nearby(mlp_task().initial, 1)
    message = a_message(task, [1.0, 0.0, 1.0])
    z, p = features(task, y, DATA.x), message["prototypes"].numpy()
    labels = DATA.y.numpy()
    pulls = [((z[labels == c].mean(axis=0) - p[c]) ** 2).mean() for c in (0, 2)]
    found = added(kind(lam=0.7, pull="prototypes"), task, message, y, DATA)
    assert found == pytest.approx(0.7 * np.mean(pulls), abs=1e-6)


def test_old_prototypes_keep_their_part() -> None:
    """Class 0 was known, class 1 was not, class 2 is held by nobody now."""
    old = {"prototypes": torch.full((3, 2), 9.0), "known": torch.tensor([1.0, 0.0, 1.0])}
    server = FedProto(momentum=0.75).global_prototypes(old, REPLIES)
    assert server["prototypes"].tolist() == [[7.5, 7.75], [3.0, 4.0], [9.0, 9.0]]


def test_domains_count_alike() -> None:
    """Three clients of one domain and one of another: the mean of the two domains' means."""
    rows = [[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [10.0, 0.0]]
    replies = [client_reply(k, [row, row, row], [1.0, 1.0, 0.0]) for k, row in enumerate(rows)]
    task = replace(mlp_task(clients=4), domains=(0, 0, 0, 1))
    server = FedProto(hierarchical=True).renewed_prototypes(task, {}, replies)
    assert server["prototypes"][:2].tolist() == [[6.0, 0.0], [6.0, 0.0]]
    assert server["known"].tolist() == [1.0, 1.0, 0.0]
    plain = FedProto().renewed_prototypes(task, {}, replies)
    assert plain["prototypes"][0].tolist() == [4.0, 0.0]


@both
def test_a_projector_makes_the_features(kind: Kind) -> None:
    task, method = mlp_task(), kind(projector=4)
    state = method.server(task) | method.client(task)
    model = nearby(state["model"], 2)
    x = a_batch().x
    layers = {name.split(".")[1]: leaf for name, leaf in model.items() if name.startswith("prototype_")}
    hidden = F.relu(F.linear(task.encode(model, x), layers["W1"], layers["b1"]))
    z = F.linear(hidden, layers["W2"], layers["b2"])
    assert layers["W1"].shape == (4, HIDDEN)
    torch.testing.assert_close(method.features(task, model, x), z)
    loss = method.objective(task, state, {"model": model})(model, Batch(x, a_batch().y))
    torch.testing.assert_close(loss, F.cross_entropy(task.logits_from(model, z), a_batch().y))


@both
def test_a_frozen_backbone_stays_and_the_projector_trains(kind: Kind) -> None:
    task, method = mlp_task(), kind(projector=4, freeze_backbone=True)
    ends = []
    for host_kind in (LoopHost, StackedHost):
        run, host = federation(method, task, uneven_clients(), kind=host_kind)
        run.advance()
        run.advance()
        ends.append((run.server if method.has_global_model else host.state(1))["model"])
    encoder = [name for name in task.initial if name.startswith("encoder.")]
    assert close(ends[0].only(encoder), task.initial.only(encoder), tolerance=1e-6)
    start = (method.server(task) | method.client(task))["model"]
    own = [name for name in start if name.startswith("prototype_")]
    assert not close(ends[0].only(own), start.only(own), tolerance=1e-4)
    assert close(*ends, tolerance=1e-5)


@both
def test_what_cannot_work_is_refused(kind: Kind) -> None:
    kind(projector=4, freeze_backbone=True).check(frozen_task())
    with pytest.raises(ValueError, match="set projector too"):
        kind(freeze_backbone=True).check(mlp_task())
    with pytest.raises(ValueError, match="one domain each"):
        kind(hierarchical=True).check(mlp_task())


@both
@pytest.mark.parametrize("options", [{"pull": "prototypes"}, {"squared": False}, {"momentum": 0.5}])
def test_options_change_something_and_are_the_same_stacked(kind: Kind, options: dict[str, Any]) -> None:
    ends = []
    for how, host_kind in (({}, LoopHost), (options, LoopHost), (options, StackedHost)):
        run, host = federation(kind(lam=3.0, **how), mlp_task(), uneven_clients(), kind=host_kind)
        for _ in range(3):
            run.advance()
        ends.append((run.server if kind.has_global_model else host.state(1))["model"])
    assert not close(ends[0], ends[1], tolerance=1e-5)
    assert close(ends[1], ends[2], tolerance=1e-5)


@both
def test_the_defaults_are_no_part_of_a_cells_name(kind: Kind) -> None:
    names = {"pull", "squared", "projector", "freeze_backbone", "momentum", "hierarchical"}
    assert not names & set(kind().model_dump(mode="json"))
