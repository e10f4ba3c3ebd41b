"""GGEUR against numpy, closed forms, and federations small enough to look into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench.engine.clients.base import Host
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.federation import Federation
from bench.models.architectures.head import Head
from bench.models.base import seeded_model
from methods.base import Samples, State, Task
from methods.fedavg import FedAvg
from methods.scaffold import Scaffold
from methods.shared.geometry import Axes, geometry_similarity, principal_axes
from methods.wrappers.ggeur import GGEUR
from methods.wrappers.ggeur.exchanges import StatisticsUp
from tests.kit.tiny import CLASSES, WIDTH, close, draw, federation, samples, task_of

FAR = 100.0 * torch.eye(CLASSES, WIDTH)
"""Class centres so far apart that a sample's label can be read off it."""


def head_task(clients: int, domains: Sequence[int] = ()) -> Task:
    task = task_of(seeded_model(Head(), (WIDTH,), CLASSES, seed=0), clients)
    return replace(task, domains=tuple(domains), input_shape=(WIDTH,))


def lopsided_clients() -> list[Samples]:
    """The second has one sample of class 2, the third none of it."""
    return [
        samples([0] * 9 + [1] * 4 + [2] * 6, 1),
        samples([0] * 2 + [1] * 8 + [2], 2),
        samples([0] * 3 + [1] * 3, 3),
    ]


def after_prelude(
    method: GGEUR, task: Task, clients: Sequence[Samples], kind: type[Host] = LoopHost
) -> tuple[Federation, Host, dict[str, Any]]:
    run, host = federation(method, task, clients, kind=kind)
    return run, host, run.prelude()


def after_statistics(method: GGEUR, task: Task, clients: Sequence[Samples]) -> State:
    """The server when all clients have sent their statistics, before it looks for axes."""
    (exchange,) = [each for each in method.prelude(task) if isinstance(each, StatisticsUp)]
    run, host = federation(method, task, clients)
    server = run.server
    for client in range(len(clients)):
        [sent] = host.run(0, 0, [(client, {})])
        server = exchange.fold(task, server, sent)
    return server


def test_folded_statistics_are_those_of_the_pooled_samples() -> None:
    clients = lopsided_clients()
    server = after_statistics(GGEUR(inner=FedAvg(), min_class_count=1), head_task(3), clients)
    x = torch.cat([each.x for each in clients]).double().numpy()
    y = torch.cat([each.y for each in clients]).numpy()
    for label in range(CLASSES):
        members = x[y == label]
        assert server["moments"]["counts"][label] == len(members)
        np.testing.assert_allclose(server["moments"]["means"][label], members.mean(axis=0), atol=1e-8)
        np.testing.assert_allclose(
            server["moments"]["covariances"][label], np.cov(members.T, bias=True), atol=1e-8
        )


def test_a_class_of_one_sample_is_withheld_and_counted() -> None:
    clients = lopsided_clients()
    run, _, record = after_prelude(GGEUR(inner=FedAvg()), head_task(3), clients)
    assert record["metrics"]["withheld_classes"] == 1
    server = after_statistics(GGEUR(inner=FedAvg()), head_task(3), clients)
    alone = clients[0].x[clients[0].y == 2].double().numpy()
    assert server["moments"]["counts"][2] == len(alone)
    np.testing.assert_allclose(server["moments"]["means"][2], alone.mean(axis=0), atol=1e-8)
    assert run.advance()["metrics"]["withheld_classes"] == 1


def test_the_axes_rebuild_the_covariance() -> None:
    x = torch.randn(3, 20, WIDTH, dtype=torch.float64, generator=draw(4))
    covariances = x.transpose(1, 2) @ x / 20
    values, vectors = principal_axes(covariances)
    assert bool((values.diff(dim=1) <= 0).all())
    np.testing.assert_allclose((vectors * values[:, None]) @ vectors.transpose(1, 2), covariances, atol=1e-12)
    top = principal_axes(covariances, top_k=2)
    assert torch.equal(top.eigenvalues, values[:, :2])
    assert torch.equal(top.eigenvectors, vectors[:, :, :2])
    raised = principal_axes(covariances, ridge=0.5).eigenvalues
    np.testing.assert_allclose(raised, values + 0.5, atol=1e-12)


def test_eigenvalues_below_zero_count_as_zero() -> None:
    values, _ = principal_axes(torch.diag(torch.tensor([1.0, -1e-9, 0.0]))[None])
    assert values.min() == 0


@pytest.mark.parametrize(("noise_scale", "power"), [("sqrt", 1), ("linear", 2)])
def test_samples_have_the_mean_and_the_covariance_asked_for(noise_scale: Any, power: int) -> None:
    """The printed scale ε·λ gives the square of the covariance instead."""
    method = GGEUR(inner=FedAvg(), noise_scale=noise_scale, samples_per_class=60_000)
    clients = lopsided_clients()
    _, host, _ = after_prelude(method, head_task(3), clients)
    made = host.made(1, number=1)
    server = after_statistics(method, head_task(3), clients)
    for label in (0, 1):
        own = clients[1].x[clients[1].y == label]
        members = made.x[made.y == label]
        assert len(members) == 60_000
        assert torch.equal(members[: len(own)], own)
        centres = own[torch.arange(60_000 - len(own)) % len(own)]
        noise = (members[len(own) :] - centres).double().numpy()
        expected = np.linalg.matrix_power(server["moments"]["covariances"][label].numpy(), power)
        spread = np.sqrt(np.diag(expected))
        assert (np.abs(noise.mean(axis=0)) < 4 * spread / np.sqrt(60_000)).all()
        np.testing.assert_allclose(
            np.cov(noise.T, bias=True), expected, atol=0.03 * float(np.abs(expected).max())
        )


def test_every_class_that_a_client_has_is_filled_up() -> None:
    clients = lopsided_clients()
    _, host, _ = after_prelude(GGEUR(inner=FedAvg(), samples_per_class=7), head_task(3), clients)
    assert host.made(0, 1).y.bincount(minlength=CLASSES).tolist() == [9, 7, 7]
    assert host.made(1, 1).y.bincount(minlength=CLASSES).tolist() == [7, 8, 7]
    assert host.made(2, 1).y.bincount(minlength=CLASSES).tolist() == [7, 7, 0]


def far_apart(domain: int, labels: Sequence[int], seed: int) -> Samples:
    """Classes on different axes, domains at different distances on them."""
    y = torch.tensor(labels)
    noise = 0.5 * torch.randn(len(y), WIDTH, generator=draw(seed))
    return Samples((1 + domain) * FAR[y] + noise, y)


def domain_clients() -> tuple[list[Samples], tuple[int, ...]]:
    """Two clients of the first domain, one each of the two others; the last has no class 2."""
    clients = [
        far_apart(0, [0] * 5 + [1] * 5 + [2] * 5, 1),
        far_apart(0, [0] * 5 + [1] * 5 + [2] * 5, 2),
        far_apart(1, [0] * 5 + [1] * 5 + [2] * 5, 3),
        far_apart(2, [0] * 5 + [1] * 5, 4),
    ]
    return clients, (0, 0, 1, 2)


def test_step_two_adds_samples_around_the_other_domains_and_never_the_own() -> None:
    clients, domains = domain_clients()
    method = GGEUR(inner=FedAvg(), step1_samples=5, step2_samples=40, top_k=1, min_class_count=2)
    _, host, _ = after_prelude(method, head_task(4, domains), clients)
    message = host.state(0)["prototypes"]
    assert message.shape == (2, CLASSES, WIDTH)
    for client, domain in enumerate(domains):
        others = sorted({0, 1, 2} - {domain})
        prototypes = host.state(client)["prototypes"]
        for row, other in enumerate(others):
            at = [k for k, each in enumerate(domains) if each == other]
            for label in range(CLASSES):
                members = torch.cat([clients[k].x[clients[k].y == label] for k in at])
                if len(members):
                    np.testing.assert_allclose(prototypes[row, label], members.mean(dim=0), rtol=1e-5)
    made = host.made(3, 1)
    assert made.y.bincount().tolist() == [5 + 2 * 40, 5 + 2 * 40, 2 * 40]
    made = host.made(2, 1)
    assert made.y.bincount().tolist() == [5 + 2 * 40, 5 + 2 * 40, 5 + 40]


def test_labels_are_right_in_every_domain() -> None:
    clients, domains = domain_clients()
    far = [Samples(each.x, each.y) for each in clients]
    method = GGEUR(inner=FedAvg(), step1_samples=30, step2_samples=30)
    _, host, _ = after_prelude(method, head_task(4, domains), far)
    for client in range(4):
        made = host.made(client, 1)
        assert len(made.y) > 200
        others = made.x[:, :CLASSES].abs().scatter(1, made.y[:, None], 0)
        assert bool((others < 5).all())


def test_without_step_two_only_own_classes_are_filled() -> None:
    clients, domains = domain_clients()
    method = GGEUR(inner=FedAvg(), step1_samples=8, step2=False)
    _, host, _ = after_prelude(method, head_task(4, domains), clients)
    assert host.made(3, 1).y.bincount(minlength=CLASSES).tolist() == [8, 8, 0]
    assert "prototypes" not in host.state(3)


def test_domains_can_be_ignored() -> None:
    clients, domains = domain_clients()
    method = GGEUR(inner=FedAvg(), domains="one", samples_per_class=11)
    _, host, _ = after_prelude(method, head_task(4, domains), clients)
    assert host.made(3, 1).y.bincount(minlength=CLASSES).tolist() == [11, 11, 0]


def test_samples_stay_or_are_drawn_anew_as_asked() -> None:
    clients, task = lopsided_clients(), head_task(3)
    _, once, _ = after_prelude(GGEUR(inner=FedAvg(), samples_per_class=20), task, clients)
    assert torch.equal(once.made(0, 1, 0).x, once.made(0, 2, 1).x)
    fresh = GGEUR(inner=FedAvg(), samples_per_class=20, resample="epoch")
    _, host, _ = after_prelude(fresh, task, clients)
    draws = [host.made(0, number, epoch).x for number in (1, 2) for epoch in (0, 1)]
    assert len({each.sum().item() for each in draws}) == 4


class LoopWithLittleRoom(LoopHost):
    room = 1500


class StackedWithLittleRoom(StackedHost):
    room = 1500


@pytest.mark.parametrize("resample", ["once", "epoch"])
@pytest.mark.parametrize("inner", [FedAvg(), Scaffold()])
def test_stacked_is_the_loop_with_and_without_room(resample: Any, inner: Any) -> None:
    """With room for the samples of one client only, groups of clients follow each other."""
    method = GGEUR(inner=inner, samples_per_class=20, resample=resample)
    ends = []
    for kind in (LoopHost, LoopWithLittleRoom, StackedHost, StackedWithLittleRoom):
        run, _ = federation(method, head_task(3), lopsided_clients(), epochs=2, kind=kind)
        run.prelude()
        for _ in range(3):
            run.advance()
        ends.append(run.server["inner"]["model"])
    assert all(close(end, ends[0], tolerance=1e-5) for end in ends[1:])


@pytest.mark.parametrize("kind", [LoopHost, StackedHost])
def test_clients_share_one_copy_of_the_axes_also_after_a_restart(kind: type[Host], tmp_path: Path) -> None:
    method = GGEUR(inner=FedAvg(), samples_per_class=20)
    run, host, _ = after_prelude(method, head_task(3), lopsided_clients(), kind)
    run.advance()
    run.save(tmp_path)
    again, other = federation(method, head_task(3), lopsided_clients(), kind=kind)
    again.load(tmp_path, 1)
    again.advance()
    for each in (host, other):
        axes = [each.state(client)["shared"]["axes"]["eigenvectors"] for client in range(3)]
        assert axes[0] is axes[1] is axes[2]


def test_refusals_say_why() -> None:
    images = replace(head_task(3), input_shape=(3, 8, 8))
    with pytest.raises(ValueError, match="works on embeddings"):
        GGEUR(inner=FedAvg()).check(images)
    with pytest.raises(ValueError, match="several domains"):
        GGEUR(inner=FedAvg(), domains="several").check(head_task(3))
    with pytest.raises(ValueError, match=r"ggeur\+fedavg alone"):
        GGEUR(inner=Scaffold(), as_published=True).check(head_task(3))


def test_similarity_is_one_for_equal_axes_and_follows_the_angle() -> None:
    plain = Axes(torch.tensor([[3.0, 1.0]]), torch.eye(2)[None])
    assert geometry_similarity(plain, plain).item() == pytest.approx(1)
    cos, sin = np.cos(0.3), np.sin(0.3)
    turned = Axes(plain.eigenvalues, torch.tensor([[[cos, -sin], [sin, cos]]], dtype=torch.float32))
    assert geometry_similarity(plain, turned).item() == pytest.approx(cos)
    swapped = Axes(plain.eigenvalues, torch.eye(2)[None].flip(-1))
    assert geometry_similarity(plain, swapped).item() == pytest.approx(0)


def test_a_class_without_variance_is_like_no_other() -> None:
    point = principal_axes(torch.zeros(1, 3, 3, dtype=torch.float64))
    assert geometry_similarity(point, point).item() == 0
