"""FedMix, FEDGEN and FedFA against closed forms, and GGEUR around every method that works on embeddings."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from bench.contract.models import MODELS
from bench.engine.hosts.base import Host
from bench.engine.hosts.loop import LoopHost
from bench.engine.hosts.stacked import StackedHost
from bench.models.architectures.cnn import CNN
from bench.models.architectures.head import Head
from bench.models.base import seeded_model
from bench.suite.methods import METHODS
from kit.contract import PLAIN, accepted_model, make_method, run, tiny_problem, tiny_task
from kit.tiny import (
    CLASSES,
    HIDDEN,
    WIDTH,
    batches_of,
    close,
    federation,
    gradient,
    mlp_task,
    nearby,
    samples,
    task_of,
    uneven_clients,
)
from methods.base import Batch, Samples, State, Task, Tree
from methods.fedfa import FedFA, channel_weights, noise_scale
from methods.fedgen import FedGen, diversity_loss, labels_at, make_latent
from methods.fedmix import FedMix
from methods.modules.pixels import Pixels

in_one_process = pytest.mark.parametrize("kind", [LoopHost, StackedHost])


def head_task(clients: int = 3) -> Task:
    return task_of(seeded_model(Head(), (WIDTH,), CLASSES, seed=0), clients)


def a_batch(key: int = 7) -> Batch:
    data = samples([0, 1, 2, 2, 1, 0, 1], seed=9)
    return Batch(data.x, data.y, key=key)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


# FedMix


def one_mean(seed: int = 5) -> State:
    """A client that knows a single averaged sample."""
    x = torch.randn(1, WIDTH, generator=torch.Generator().manual_seed(seed))
    return {"means": {"x": x, "y": torch.tensor([[0.2, 0.5, 0.3]])}}


def fedmix_loss(task: Task, y: Tree, batch: Batch, **options: Any) -> float:
    return float(FedMix(**options).objective(task, one_mean(), {})(y, batch).detach())


@pytest.mark.parametrize("lam", [0.05, 0.4])
def test_fedmix_on_a_linear_model_is_the_closed_form(lam: float) -> None:
    """∇_u CE(Wu + b, y) = Wᵀ(p − e_y); every sample's inner product with x̄ counts once."""
    task, batch = head_task(), a_batch()
    params = nearby(task.initial, 1)
    W, b = (params[f"classifier.{name}"].double().numpy() for name in ("weight", "bias"))
    means = one_mean()["means"]
    x_mean, y_mean = means["x"][0].double().numpy(), means["y"][0].double().numpy()
    losses = []
    for x, y in zip(batch.x.double().numpy(), batch.y.tolist(), strict=True):
        u = (1 - lam) * x
        log_p = log_softmax(W @ u + b)
        slope = W.T @ (np.exp(log_p) - np.eye(CLASSES)[y])
        losses.append((1 - lam) * -log_p[y] + lam * -(log_p @ y_mean) + lam * (1 - lam) * (slope @ x_mean))
    assert fedmix_loss(task, params, batch, lam=lam) == pytest.approx(np.mean(losses), rel=1e-5)
    mixed = log_softmax((1 - lam) * batch.x.double().numpy() @ W.T + lam * x_mean @ W.T + b)
    targets = (1 - lam) * np.eye(CLASSES)[batch.y] + lam * y_mean
    naive = -(mixed * targets).sum(axis=1).mean()
    assert fedmix_loss(task, params, batch, lam=lam, variant="naive") == pytest.approx(naive, rel=1e-5)


def test_the_variants_of_fedmix_differ_by_the_square_of_lambda() -> None:
    task = task_of(head_task().model.double())
    means = {key: value.double() for key, value in one_mean()["means"].items()}
    data = a_batch()
    batch = data._replace(x=data.x.double())
    params = nearby(task.initial, 1)

    def gap(lam: float) -> float:
        values = [
            FedMix(lam=lam, variant=variant).objective(task, {"means": means}, {})(params, batch)
            for variant in ("taylor", "naive")
        ]
        return abs(float((values[0] - values[1]).detach()))

    assert gap(0.02) / gap(0.01) == pytest.approx(4, rel=0.05)
    assert gap(0.01) / gap(0.005) == pytest.approx(4, rel=0.03)


def test_the_slope_of_fedmix_is_trained_on() -> None:
    """The gradient of the whole loss, by differences."""
    task = task_of(mlp_task().model.double())
    means = {key: value.double() for key, value in one_mean()["means"].items()}
    data = a_batch()
    batch = data._replace(x=data.x.double())
    loss = FedMix(lam=0.3).objective(task, {"means": means}, {})
    y, way = nearby(task.initial, 1), nearby(task.initial.zeros(), 2)
    slope = float((loss(y + 1e-5 * way, batch) - loss(y - 1e-5 * way, batch)).detach()) / 2e-5
    assert float(gradient(loss, y, batch).dot(way)) == pytest.approx(slope, rel=1e-5)


@in_one_process
def test_everybody_gets_means_of_whole_groups_and_nobody_keeps_another_copy(kind: type[Host]) -> None:
    clients = uneven_clients()  # 7, 12 and 4 samples
    run_, host = federation(FedMix(group_size=5), head_task(), clients, kind=kind)
    record = run_.prelude()
    assert record["metrics"] == {"averaged_samples": 3}
    means = [host.state(client)["means"] for client in range(3)]
    assert means[0]["x"].shape == (3, WIDTH)
    assert means[0]["x"] is means[1]["x"] is means[2]["x"]
    np.testing.assert_allclose(means[0]["y"].sum(dim=1), np.ones(3), rtol=1e-6)
    np.testing.assert_allclose(means[0]["y"] * 5, (means[0]["y"] * 5).round(), atol=1e-5)
    assert "means" not in run_.server
    assert record["bytes_down"] == 3 * record["bytes_up"]


def test_groups_of_fedmix_do_not_overlap() -> None:
    """Groups of one are the samples themselves, in another order; even groups have the mean of all."""
    data = uneven_clients()[1]
    task = head_task(1)
    run_, host = federation(FedMix(group_size=1), task, [data])
    run_.prelude()
    found = host.state(0)["means"]["x"]
    assert not torch.equal(found, data.x)  # at random
    assert torch.equal(found.sort(dim=0).values, data.x.sort(dim=0).values)
    run_, host = federation(FedMix(group_size=6), task, [data])
    run_.prelude()
    np.testing.assert_allclose(host.state(0)["means"]["x"].mean(dim=0), data.x.mean(dim=0), atol=1e-6)


def test_without_a_whole_group_there_is_nothing_to_mix_with() -> None:
    run_, _ = federation(FedMix(group_size=50), head_task(), uneven_clients())
    assert run_.prelude()["metrics"] == {"averaged_samples": 0}
    run_.advance()
    assert bool(torch.isfinite(run_.server["model"]["classifier.weight"]).all())


def test_fedmix_mixes_pictures_as_models_see_them() -> None:
    """Bytes and the floats that the first layer makes of them give the same averages and the same model."""
    spec = CNN(channels=(2, 3), features=HIDDEN, embedding=4, grid=2)
    task = task_of(seeded_model(spec, (3, 8, 8), CLASSES, seed=0), clients=1)
    draw = torch.Generator().manual_seed(0)
    pictures = torch.randint(0, 256, (10, 3, 8, 8), generator=draw, dtype=torch.uint8)
    y = torch.arange(10) % CLASSES
    ends = []
    for x in (pictures, Pixels()(pictures)):
        run_, host = federation(FedMix(lam=0.2), task, [Samples(x, y)])
        run_.prelude()
        run_.advance()
        assert float(host.state(0)["means"]["x"].abs().max()) < 3
        ends.append(run_.server["model"])
    assert close(*ends, tolerance=1e-6)


# FEDGEN


def fedgen_message(task: Task, rounds: int = 3) -> dict[str, Any]:
    server = FedGen().server(task)
    labels = torch.tensor([0.5, 0.0, 0.5])
    return {**server, "labels": labels, "rounds": torch.tensor(rounds)}


@pytest.mark.parametrize("make_task", [head_task, mlp_task])
def test_fedgen_adds_the_terms_of_numpy(make_task: Any) -> None:
    task, batch = make_task(), a_batch()
    message, y = fedgen_message(task), nearby(task.initial, 1)
    value = float(FedGen(alpha=2.0, beta=3.0, generated=8).objective(task, {}, message)(y, batch))

    def head(z: torch.Tensor) -> np.ndarray:
        weight, bias = (y[f"classifier.{name}"].double().numpy() for name in ("weight", "bias"))
        return log_softmax(z.double().numpy() @ weight.T + bias)

    drawn = labels_at(batch.uniform(8), message["labels"])
    made = make_latent(message["generator"], batch.normal(8, 32, stream=1), drawn)
    like = make_latent(message["generator"], batch.normal(7, 32, stream=2), batch.y)
    own = head(task.encode(y, batch.x).detach())
    rows = np.arange(7)
    plain = -own[rows, batch.y].mean()
    classified = -head(made)[np.arange(8), drawn].mean()
    target = head(like)
    divergence = (np.exp(target) * (target - own)).sum(axis=1).mean()
    expected = plain + 0.98**3 * (2.0 * classified + 3.0 * divergence)
    assert value == pytest.approx(expected, rel=1e-5)


def test_the_target_of_fedgens_distillation_has_no_gradient() -> None:
    """The term's gradient in the logits of a sample is p − target."""
    task, batch = head_task(), a_batch()
    message, y = fedgen_message(task, rounds=0), nearby(task.initial, 1)
    found = gradient(FedGen(alpha=0.0, beta=1.0).objective(task, {}, message), y, batch)
    weight, bias = (y[f"classifier.{name}"].double().numpy() for name in ("weight", "bias"))
    x = batch.x.double().numpy()
    p = np.exp(log_softmax(x @ weight.T + bias))
    like = make_latent(message["generator"], batch.normal(7, 32, stream=2), batch.y).double().numpy()
    target = np.exp(log_softmax(like @ weight.T + bias))
    towards = (p - np.eye(CLASSES)[batch.y]) + (p - target)
    np.testing.assert_allclose(found["classifier.bias"], towards.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(found["classifier.weight"], towards.T @ x / 7, atol=1e-6)


def test_labels_follow_their_shares() -> None:
    numbers = torch.arange(1000) / 1000
    assert labels_at(numbers, torch.tensor([0.2, 0.0, 0.5, 0.3])).bincount().tolist() == [200, 0, 500, 300]
    assert labels_at(torch.tensor([0.9999999]), torch.tensor([0.5, 0.4999998])).tolist() == [1]


def test_diversity_is_that_of_numpy_and_falls_as_vectors_part() -> None:
    draw = torch.Generator().manual_seed(0)
    noise, z = torch.randn(6, 4, generator=draw), torch.randn(6, 3, generator=draw)
    e, v = noise.double().numpy(), z.double().numpy()
    products = [((e[i] - e[j]) ** 2).mean() * np.abs(v[i] - v[j]).mean() for i in range(6) for j in range(6)]
    assert float(diversity_loss(noise, z)) == pytest.approx(math.exp(-np.mean(products)), rel=1e-5)
    assert float(diversity_loss(noise, torch.zeros(6, 3))) == 1
    assert float(diversity_loss(noise, 3 * z)) < float(diversity_loss(noise, z))


def test_fedgens_generator_learns_what_the_heads_agree_on() -> None:
    """Each class of the vectors is taken for its own by the clients that hold it; others have no say."""
    task = head_task(2)
    heads = [nearby(task.initial, 1, scale=2.0), nearby(task.initial, 2, scale=2.0)]
    counts = torch.tensor([[30.0, 10.0, 0.0], [0.0, 10.0, 30.0]])
    method = FedGen(server_steps=400, server_lr=0.01, eta=0.0, hidden=32)
    server = method.server(task)
    generator = method.taught(task, server, heads, counts)
    noise = torch.randn(200, 32, generator=torch.Generator().manual_seed(3))
    for label, holders in ((0, [0]), (1, [0, 1]), (2, [1])):
        z = make_latent(generator, noise, torch.full((200,), label))
        for holder in holders:
            assert float((task.classify(heads[holder], z).argmax(dim=1) == label).float().mean()) > 0.95
    # The first class's own weights in the second client's head cannot matter.
    other = heads[1] | Tree({"classifier.bias": heads[1]["classifier.bias"] + torch.tensor([9.0, 0.0, 0.0])})
    only_first = torch.tensor([[30.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    same = [method.taught(task, server, [heads[0], head], only_first) for head in (heads[1], other)]
    assert close(*same, tolerance=0)


def test_fedgens_first_round_is_fedavgs_and_then_the_weights_decay() -> None:
    method = FedGen(server_steps=2)
    run_, _ = federation(method, mlp_task(), uneven_clients())
    task = run_.problem.task
    assert list(method.down(task, run_.server, 0)) == ["model"]
    for number in (1, 2):
        run_.advance()
        message = method.down(task, run_.server, 0)
        assert int(message["rounds"]) == number
        np.testing.assert_allclose(message["labels"], np.array([9, 9, 6]) / 23, atol=0.05)
    counts = np.bincount(np.concatenate([each.y for each in uneven_clients()]))
    np.testing.assert_allclose(message["labels"], counts / counts.sum(), rtol=1e-6)


# FedFA


def test_noise_has_the_size_of_the_batch_and_of_the_channels_weight() -> None:
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    gamma = torch.tensor([0.0, 1.0, 3.0])
    expected = np.sqrt((gamma.numpy() + 1) * z.double().numpy().var(axis=0))
    whole = Batch(z, torch.zeros(5))
    np.testing.assert_allclose(noise_scale(z, whole, gamma), expected, rtol=1e-5)
    padded = Batch(torch.cat([z, 9 * z]), torch.zeros(10), mask=torch.tensor([1.0] * 5 + [0.0] * 5))
    np.testing.assert_allclose(noise_scale(padded.x, padded, gamma), expected, rtol=1e-5)


def test_channels_in_which_clients_differ_weigh_more() -> None:
    means = torch.tensor([[0.0, 1.0, 5.0], [0.0, 2.0, 1.0], [0.0, 3.0, 0.0]])
    variance = means.double().numpy().var(axis=0)
    spread = variance / (1 + variance)
    np.testing.assert_allclose(channel_weights(means), 3 * spread / spread.sum(), rtol=1e-6)
    assert channel_weights(means)[0] == 0
    assert channel_weights(means[:1]).tolist() == [0, 0, 0]


@pytest.mark.parametrize("make_task", [head_task, mlp_task])
def test_fedfa_classifies_the_moved_features(make_task: Any) -> None:
    task, batch = make_task(), a_batch()
    y = nearby(task.initial, 1)
    gamma = torch.linspace(0, 2, task.model.feature_size)
    z = task.encode(y, batch.x).detach().double().numpy()
    noise = batch.normal(*z.shape, stream=1).double().numpy()
    moved = z + noise * np.sqrt((gamma.numpy() + 1) * z.var(axis=0))
    weight, bias = (y[f"classifier.{name}"].double().numpy() for name in ("weight", "bias"))
    rows = np.arange(len(z))
    expected = [-log_softmax(at @ weight.T + bias)[rows, batch.y].mean() for at in (moved, z)]
    always = FedFA(probability=1.0).objective(task, {}, {"gamma": gamma})(y, batch)
    assert float(always) == pytest.approx(expected[0], rel=1e-5)
    sometimes = FedFA(probability=0.5).objective(task, {}, {"gamma": gamma})
    values = [float(sometimes(y, batch._replace(key=key))) for key in range(400)]
    untouched = np.isclose(values, expected[1], rtol=1e-6).mean()
    assert abs(untouched - 0.5) < 4 * 0.5 / math.sqrt(400)


def test_a_channel_without_variance_has_a_gradient() -> None:
    """A feature that is 0 for the whole batch, as rectifiers make them, gives no NaN."""
    task = mlp_task()
    dead = task.initial["encoder.2.bias"].clone()
    dead[0] = -100
    y = task.initial | Tree({"encoder.2.bias": dead})
    loss = FedFA(probability=1.0).objective(task, {}, {"gamma": torch.ones(HIDDEN)})
    grads = gradient(loss, y, a_batch())
    assert all(bool(torch.isfinite(leaf).all()) for leaf in grads.values())


def test_clients_of_fedfa_send_the_mean_of_their_features() -> None:
    task, data = head_task(), uneven_clients()[1]
    message = FedFA().down(task, FedFA().server(task), 0)
    reply, _ = FedFA().local(task, {}, message, batches_of(data, size=5))
    np.testing.assert_allclose(reply["mean"], data.x.double().numpy().mean(axis=0), atol=1e-6)


# GGEUR around them


def model_on_embeddings(name: str) -> str:
    """The tiny head, or for methods with a model of their own what stands in for it."""
    method = make_method(name)
    model = accepted_model(method) if method.own_model else "head"
    try:
        method.check(tiny_task(model, PLAIN, 3, 0))
    except ValueError as refusal:
        pytest.skip(f"{name} {refusal}")
    return model


@pytest.mark.parametrize("name", [name for name in METHODS.names() if name != "central"])
def test_ggeur_goes_around_every_method_on_embeddings(name: str) -> None:
    model = model_on_embeddings(name)
    method = make_method(f"ggeur+{name}", inner=make_method(name))
    assert len(MODELS[model].shape) == 1
    problem = replace(tiny_problem(method, model), method=method)
    ends = []
    for kind in (LoopHost, StackedHost):
        host = kind(problem)
        federated = run(problem, host, rounds=2)
        assert len(host.made(2, 1).y) > len(problem.train[2].y)
        ends.append([method.predict(problem.task, federated.server, host.state(0), problem.test["near"].x)])
    np.testing.assert_allclose(*(end[0].detach() for end in ends), atol=1e-4)
