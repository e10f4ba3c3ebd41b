"""FedProto and its form with averaged weights."""

from typing import Any, TypeAlias

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from bench.engine.clients.base import Host
from bench.engine.clients.loop import LoopHost
from methods.base import Batch, FedAlgorithm, Message, Reply, State, Task, Tree
from methods.fedavg import FedAvg
from methods.fedproto import FedProto
from methods.fedproto_avg import FedProtoAvg
from methods.local import Local
from tests.kit.tiny import (
    CLASSES,
    HIDDEN,
    close,
    equal,
    federation,
    frozen_task,
    gradient,
    mlp_task,
    nearby,
    reply,
    samples,
    uneven_clients,
)

Kind: TypeAlias = type[FedProto] | type[FedProtoAvg]
both = pytest.mark.parametrize("kind", [FedProto, FedProtoAvg])


def features(task: Task, params: Tree, x: Tensor) -> np.ndarray:
    return task.encode(params, x).detach().double().numpy()


def nor(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def a_message(task: Task, known: list[float]) -> Message:
    """Prototypes whose rows are 0 where there is none, as they travel."""
    prototypes = torch.rand(CLASSES, HIDDEN, generator=torch.Generator().manual_seed(5))
    return {
        "model": task.initial,
        "prototypes": prototypes * torch.tensor(known)[:, None],
        "known": torch.tensor(known),
    }


# Prototypes


def client_reply(client: int, rows: list[list[float]], counts: list[float]) -> Reply:
    model = Tree({"w": torch.zeros(1)})
    return reply(client, 1, model=model, prototypes=torch.tensor(rows), counts=torch.tensor(counts))


REPLIES = [
    client_reply(0, [[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]], [2.0, 1.0, 0.0]),
    client_reply(1, [[5.0, 6.0], [0.0, 0.0], [0.0, 0.0]], [6.0, 0.0, 0.0]),
]


@both
def test_a_class_that_nobody_holds_this_time_keeps_its_prototype(kind: Kind) -> None:
    before = {"prototypes": torch.full((3, 2), 9.0), "known": torch.tensor([0.0, 0.0, 1.0])}
    server = kind().global_prototypes(before, REPLIES)
    assert server["prototypes"].tolist() == [[3.0, 4.0], [3.0, 4.0], [9.0, 9.0]]
    assert server["known"].tolist() == [1.0, 1.0, 1.0]


# The clients' term


@both
@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_a_missing_prototype_is_no_target(kind: Kind, distance: Any) -> None:
    """The row of zeros that travels in its place pulls nothing, and its samples have their plain gradient."""
    task, method = mlp_task(), kind(distance=distance)
    twos = samples([2, 2, 2], seed=1)
    batch = Batch(twos.x, twos.y)
    y = nearby(task.initial, 1)
    message = a_message(task, [1.0, 1.0, 0.0])
    ours = gradient(method.objective(task, method.client(task), message), y, batch)
    plain = gradient(FedAvg().objective(task, {}, message), y, batch)
    assert close(ours, plain, tolerance=1e-7)
    ones = Batch(twos.x, torch.ones(3, dtype=torch.long))
    ours = gradient(method.objective(task, method.client(task), message), y, ones)
    assert not close(ours, gradient(FedAvg().objective(task, {}, message), y, ones), tolerance=1e-3)


def standing_after(rounds: int, method: FedAlgorithm, task: Task, host: type[Host] = LoopHost) -> Tree:
    """The server's model, or the second client's where there is none."""
    run, clients = federation(method, task, uneven_clients(), kind=host)
    for _ in range(rounds):
        run.advance()
    model: Tree = (run.server if method.has_global_model else clients.state(1))["model"]
    return model


# What they are without the term


def test_fedproto_without_the_term_is_local_training_to_the_last_bit() -> None:
    assert equal(standing_after(3, FedProto(lam=0), mlp_task()), standing_after(3, Local(), mlp_task()))


# FedProto's own


def test_weights_never_travel() -> None:
    run, host = federation(FedProto(), mlp_task(), uneven_clients())
    floats = 4 * (CLASSES * HIDDEN + CLASSES)
    first, second = run.advance(), run.advance()
    assert (first["bytes_up"], first["bytes_down"]) == (3 * floats, 0)
    assert (second["bytes_up"], second["bytes_down"]) == (3 * floats, 3 * floats)
    assert sorted(run.server) == ["known", "prototypes"]
    assert not close(host.state(0)["model"], host.state(1)["model"], tolerance=1e-3)


def server_with(task: Task, known: list[float]) -> State:
    message = a_message(task, known)
    return {key: message[key] for key in ("prototypes", "known")}


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_the_nearest_prototype_is_predicted(distance: Any) -> None:
    task = mlp_task()
    client = {"model": nearby(task.initial, 1)}
    data = samples([0] * 40, seed=2)
    server = server_with(task, [1.0, 0.0, 1.0])
    scores = FedProto(distance=distance).predict(task, server, client, data.x)
    z, prototypes = features(task, client["model"], data.x), server["prototypes"].double().numpy()[[0, 2]]
    if distance == "cosine":
        z, prototypes = nor(z), nor(prototypes)
    nearest = np.linalg.norm(z[:, None] - prototypes, axis=2).argmin(axis=1)
    expected = np.array([0, 2])[nearest]
    assert scores.argmax(dim=1).tolist() == expected.tolist()
    assert len(set(expected.tolist())) == 2, "the data must tell the two apart"


def test_before_there_are_prototypes_the_classifier_predicts() -> None:
    task = mlp_task()
    client = {"model": nearby(task.initial, 1)}
    x = samples([0] * 5, seed=2).x
    assert torch.allclose(FedProto().predict(task, {}, client, x), task.logits(client["model"], x))


# Both


@both
def test_frozen_features_are_refused(kind: Kind) -> None:
    with pytest.raises(ValueError, match=r"^has no effect on a frozen encoder"):
        kind().check(frozen_task())


@both
@pytest.mark.parametrize(
    "wrong", [{"lam": -0.1}, {"temperature": 0}, {"distance": "manhattan"}, {"prototype_weighting": "median"}]
)
def test_hyperparameters_out_of_bounds_are_refused(kind: Kind, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        kind(**wrong)


@both
def test_both_predictions_are_recorded_in_one_run(kind: Kind) -> None:
    task, clients = mlp_task(), uneven_clients()
    averages = {}
    for prediction in ("prototypes", "classifier"):
        run, _ = federation(kind(prediction=prediction), task, clients)
        run.advance()
        averages[prediction] = run.evaluate(personal=False)
    shown = {name: record["test"]["all"] for name, record in averages.items()}
    assert averages["prototypes"]["metrics"] == {"avg_by_classifier": pytest.approx(shown["classifier"])}
    assert averages["classifier"]["metrics"] == {"avg_by_prototypes": pytest.approx(shown["prototypes"])}


# Options


def test_old_prototypes_keep_their_part() -> None:
    """Class 0 was known, class 1 was not, class 2 is held by nobody now."""
    old = {"prototypes": torch.full((3, 2), 9.0), "known": torch.tensor([1.0, 0.0, 1.0])}
    server = FedProto(momentum=0.75).global_prototypes(old, REPLIES)
    assert server["prototypes"].tolist() == [[7.5, 7.75], [3.0, 4.0], [9.0, 9.0]]


@both
def test_what_cannot_work_is_refused(kind: Kind) -> None:
    kind(projector=4, freeze_backbone=True).check(frozen_task())
    with pytest.raises(ValueError, match="set projector too"):
        kind(freeze_backbone=True).check(mlp_task())
    with pytest.raises(ValueError, match="one domain each"):
        kind(hierarchical=True).check(mlp_task())


@both
def test_the_defaults_are_no_part_of_a_cells_name(kind: Kind) -> None:
    names = {"pull", "squared", "projector", "freeze_backbone", "momentum", "hierarchical"}
    assert not names & set(kind().model_dump(mode="json"))
