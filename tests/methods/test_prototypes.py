"""FedProto and its form with averaged weights."""

from typing import Any, TypeAlias

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from bench.engine.hosts.base import Host
from bench.engine.hosts.loop import LoopHost
from bench.engine.hosts.stacked import StackedHost
from methods.base import Batch, FedAlgorithm, Message, Reply, State, Task, Tree
from methods.core.batches import Samples
from methods.fedavg import FedAvg
from methods.fedproto import FedProto
from methods.fedproto_avg import FedProtoAvg
from methods.local import Local
from methods.shared.prototypes import PrototypeLearning
from tests.kit.tiny import (
    CLASSES,
    HIDDEN,
    batches_of,
    close,
    equal,
    federation,
    frozen_task,
    gradient,
    mlp_task,
    nearby,
    reply,
    samples,
    server_after,
    uneven_clients,
)

Kind: TypeAlias = type[FedProto] | type[FedProtoAvg]
both = pytest.mark.parametrize("kind", [FedProto, FedProtoAvg])
NO_TWOS = samples([0, 1, 1, 0, 1], seed=4)


def features(task: Task, params: Tree, x: Tensor) -> np.ndarray:
    return task.encode(params, x).detach().double().numpy()


def class_means(task: Task, params: Tree, data: Samples) -> dict[int, np.ndarray]:
    z = features(task, params, data.x)
    return {c: z[data.y.numpy() == c].mean(axis=0) for c in sorted(set(data.y.tolist()))}


def nor(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def a_message(task: Task, known: list[float]) -> Message:
    """Prototypes whose rows are 0 where there is none, as they travel."""
    prototypes = torch.rand(CLASSES, HIDDEN, generator=torch.Generator().manual_seed(5))
    return {
        "model": task.initial,
        "prototypes": prototypes * torch.tensor(known)[:, None],
        "known": torch.tensor(known),
    }


# Prototypes


@both
def test_a_clients_prototypes_are_its_class_means_under_its_final_model(
    kind: Kind,
) -> None:
    task = mlp_task()
    method = kind()
    message = method.down(task, method.server(task), 0)
    sent, state = method.local(task, method.client(task), message, batches_of(NO_TWOS, size=2))
    final = (state | sent)["model"]
    assert not equal(final, task.initial)
    for c, mean in class_means(task, final, NO_TWOS).items():
        np.testing.assert_allclose(sent["prototypes"][c].numpy(), mean, atol=1e-6)
    assert sent["counts"].tolist() == [2, 3, 0]


def client_reply(client: int, rows: list[list[float]], counts: list[float]) -> Reply:
    model = Tree({"w": torch.zeros(1)})
    return reply(client, 1, model=model, prototypes=torch.tensor(rows), counts=torch.tensor(counts))


REPLIES = [
    client_reply(0, [[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]], [2.0, 1.0, 0.0]),
    client_reply(1, [[5.0, 6.0], [0.0, 0.0], [0.0, 0.0]], [6.0, 0.0, 0.0]),
]


@both
@pytest.mark.parametrize(
    ("weighting", "first"), [("mean", [3.0, 4.0]), ("weighted_mean", [4.0, 5.0])], ids=["mean", "weighted"]
)
def test_global_prototypes_worked_out_by_hand(kind: Kind, weighting: Any, first: list[float]) -> None:
    """Class 0 of both clients, class 1 of one, class 2 of none."""
    server = kind(prototype_weighting=weighting).global_prototypes({}, REPLIES)
    assert server["prototypes"][:2].tolist() == [first, [3.0, 4.0]]
    assert server["known"].tolist() == [1.0, 1.0, 0.0]


@both
def test_a_class_that_nobody_holds_this_time_keeps_its_prototype(kind: Kind) -> None:
    before = {"prototypes": torch.full((3, 2), 9.0), "known": torch.tensor([0.0, 0.0, 1.0])}
    server = kind().global_prototypes(before, REPLIES)
    assert server["prototypes"].tolist() == [[3.0, 4.0], [3.0, 4.0], [9.0, 9.0]]
    assert server["known"].tolist() == [1.0, 1.0, 1.0]


@both
def test_normalised_prototypes_have_length_1_wherever_they_stand(kind: Kind) -> None:
    task = mlp_task()
    method = kind(normalize_prototypes=True)
    message = method.down(task, method.server(task), 0)
    sent, state = method.local(task, method.client(task), message, batches_of(NO_TWOS))
    for c, mean in class_means(task, (state | sent)["model"], NO_TWOS).items():
        np.testing.assert_allclose(sent["prototypes"][c].numpy(), nor(mean), atol=1e-6)
    merged = method.global_prototypes({}, REPLIES)["prototypes"][:2]
    np.testing.assert_allclose(merged.norm(dim=1).numpy(), 1, atol=1e-6)


# The clients' term


@both
@pytest.mark.parametrize("normalised", [False, True])
def test_the_euclidean_pull_is_that_of_numpy(kind: Kind, normalised: bool) -> None:
    task, method = mlp_task(), kind(lam=0.7, normalize_prototypes=normalised)
    data = uneven_clients()[0]
    message = a_message(task, [1.0, 1.0, 0.0])
    y = nearby(task.initial, 1)
    z = features(task, y, data.x)
    z = nor(z) if normalised else z
    pulls = [
        ((row - message["prototypes"][label].numpy()) ** 2).sum() / HIDDEN if label < 2 else 0.0
        for row, label in zip(z, data.y.tolist(), strict=True)
    ]
    assert added(method, task, message, y, data) == pytest.approx(0.7 * np.mean(pulls), abs=1e-6)


@both
def test_the_cosine_pull_is_that_of_numpy(kind: Kind) -> None:
    """A softmax over the two classes that have a prototype, and nothing for samples of the third."""
    task, method = mlp_task(), kind(lam=0.7, distance="cosine", temperature=0.4)
    data = uneven_clients()[0]
    message = a_message(task, [1.0, 0.0, 1.0])
    y = nearby(task.initial, 1)
    powers = np.exp(nor(features(task, y, data.x)) @ nor(message["prototypes"].numpy()[[0, 2]]).T / 0.4)
    shares = powers / powers.sum(axis=1, keepdims=True)
    column = {0: 0, 2: 1}
    pulls = [
        -np.log(row[column[label]]) if label in column else 0.0
        for row, label in zip(shares, data.y.tolist(), strict=True)
    ]
    assert added(method, task, message, y, data) == pytest.approx(0.7 * np.mean(pulls), abs=1e-6)


def added(method: PrototypeLearning, task: Task, message: Message, y: Tree, data: Samples) -> float:
    batch = Batch(data.x, data.y)
    plain = FedAvg().objective(task, {}, message)(y, batch)
    return float(method.objective(task, method.client(task), message)(y, batch) - plain)


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


@both
def test_the_first_round_has_no_term(kind: Kind) -> None:
    strong, none = (standing_after(1, kind(lam=lam), mlp_task()) for lam in (9.0, 0.0))
    assert equal(strong, none)
    strong, none = (standing_after(2, kind(lam=lam), mlp_task()) for lam in (9.0, 0.0))
    assert not close(strong, none, tolerance=1e-3)


def standing_after(rounds: int, method: FedAlgorithm, task: Task, host: type[Host] = LoopHost) -> Tree:
    """The server's model, or the second client's where there is none."""
    run, clients = federation(method, task, uneven_clients(), kind=host)
    for _ in range(rounds):
        run.advance()
    return (run.server if method.has_global_model else clients.state(1))["model"]


# What they are without the term


def test_fedproto_without_the_term_is_local_training_to_the_last_bit() -> None:
    assert equal(standing_after(3, FedProto(lam=0), mlp_task()), standing_after(3, Local(), mlp_task()))


def test_fedproto_avg_without_the_term_is_fedavg_to_the_last_bit() -> None:
    ends = [
        server_after(3, method, mlp_task(), uneven_clients(), epochs=2)["model"]
        for method in (FedProtoAvg(lam=0), FedAvg())
    ]
    assert equal(*ends)


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


def test_prediction_by_the_classifier_is_a_choice() -> None:
    task = mlp_task()
    client = {"model": nearby(task.initial, 1)}
    x = samples([0] * 5, seed=2).x
    scores = FedProto(prediction="classifier").predict(task, server_with(task, [1.0, 1.0, 1.0]), client, x)
    assert torch.allclose(scores, task.logits(client["model"], x))
    before_any = FedProto().predict(task, {}, client, x)
    assert torch.allclose(before_any, task.logits(client["model"], x))


# Both


@both
@pytest.mark.parametrize("options", [{"distance": "cosine"}, {"normalize_prototypes": True}])
def test_options_give_the_same_stacked(kind: Kind, options: dict[str, Any]) -> None:
    one, stacked = (
        standing_after(3, kind(**options), mlp_task(), host=host) for host in (LoopHost, StackedHost)
    )
    assert close(one, stacked, tolerance=1e-5)


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
