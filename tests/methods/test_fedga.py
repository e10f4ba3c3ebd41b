"""FedGA: the weights move towards clients that the average serves worse."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from bench.engine.hosts.loop import LoopHost
from bench.engine.hosts.stacked import StackedHost
from methods.base import State, Task
from methods.core.batches import Samples
from methods.fedavg import FedAvg
from methods.fedga import FedGA
from tests.kit.tiny import (
    batches_of,
    close,
    equal,
    federation,
    mlp_task,
    nearby,
    reply,
    samples,
    server_after,
    uneven_clients,
)

TEN = samples([0, 1, 2, 0, 1, 2, 0, 1, 2, 0], seed=6)
HELD = torch.tensor([4, 9])  # a fifth of ten
KEPT = torch.tensor([0, 1, 2, 3, 5, 6, 7, 8])


def part(data: Samples, at: torch.Tensor) -> Samples:
    return Samples(data.x[at], data.y[at])


def after_round(method: FedGA, task: Task, gaps: list[float], server: State | None = None) -> State:
    replies = [reply(k, 1, model=task.initial, gap=torch.tensor(gap)) for k, gap in enumerate(gaps)]
    return method.aggregate(task, server or method.server(task), replies)


# The server


def test_weights_worked_out_by_hand() -> None:
    """1/3 + 0.2·(1, −0.5, 0.25) = (0.5333, 0.2333, 0.3833), divided by their sum 1.15."""
    server = after_round(FedGA(), mlp_task(), [2.0, -1.0, 0.5])
    expected = [0.533333333 / 1.15, 0.233333333 / 1.15, 0.383333333 / 1.15]
    assert server["shares"].tolist() == pytest.approx(expected, abs=1e-6)


def test_a_client_that_the_average_serves_worse_gains_weight() -> None:
    shares = after_round(FedGA(), mlp_task(), [1.0, -1.0, 0.0])["shares"].tolist()
    assert shares[0] > shares[2] > shares[1]


def test_weights_are_clipped_at_zero_and_average_the_models() -> None:
    task = mlp_task()
    models = [nearby(task.initial, seed) for seed in (1, 2, 3)]
    gaps = [1.0, -1.0, -0.5]
    replies = [reply(k, 5, model=models[k], gap=torch.tensor(gaps[k])) for k in range(3)]
    server = FedGA(step=0.5).aggregate(task, FedGA().server(task), replies)
    first, third = (1 / 3 + 0.5), 1 / 3 - 0.25
    total = first + third
    assert server["shares"].tolist() == pytest.approx([first / total, 0.0, third / total])
    expected = (first / total) * models[0] + (third / total) * models[2]
    assert close(server["model"], expected, tolerance=1e-6)


def test_the_step_falls_to_zero_over_the_rounds() -> None:
    task = replace(mlp_task(), rounds=4)
    method = FedGA(step=0.1)
    moves = []
    server = method.server(task)
    for _ in range(6):
        before = server["shares"]
        server = after_round(method, task, [1.0, -1.0, 0.0], server | {"shares": torch.full((3,), 1 / 3)})
        moves.append(float(server["shares"][0] - 1 / 3))
        assert before is not server["shares"]
    assert moves == pytest.approx([0.1, 0.075, 0.05, 0.025, 0.0, 0.0], abs=1e-6)


def test_the_public_codes_step_is_divided_by_the_clients() -> None:
    shares = after_round(FedGA(step=0.3, step_per_client=True), mlp_task(), [1.0, -1.0, 0.0])["shares"]
    assert shares.tolist() == pytest.approx([1 / 3 + 0.1, 1 / 3 - 0.1, 1 / 3], abs=1e-6)


def test_no_gap_moves_nothing_and_no_weight_at_all_is_refused() -> None:
    task = mlp_task()
    assert after_round(FedGA(), task, [0.0, 0.0, 0.0])["shares"].tolist() == [1 / 3] * 3
    assert after_round(FedGA(step=0.5), task, [-1.0, -1.0, -1.0])["shares"].tolist() == [1 / 3] * 3


def test_those_who_stay_away_keep_their_weight_relative_to_each_other() -> None:
    task = mlp_task(clients=4)
    replies = [reply(1, 1, model=task.initial, gap=torch.tensor(1.0))]
    shares = FedGA().aggregate(task, FedGA().server(task), replies)["shares"].tolist()
    assert shares[0] == shares[2] == shares[3] == pytest.approx(0.25 / 1.2)


# The clients


def test_the_gap_is_the_new_models_loss_minus_the_own_models_on_held_out_samples() -> None:
    task, method = mlp_task(), FedGA()
    first, second = task.initial, nearby(task.initial, 1)
    sent, state = method.local(task, method.client(task), {"model": first}, batches_of(TEN, size=3))
    assert float(sent["gap"]) == 0
    held = part(TEN, HELD)
    own = F.cross_entropy(task.logits(sent["model"], held.x), held.y)
    assert float(state["own_loss"]) == pytest.approx(float(own), rel=1e-5)
    later, _ = method.local(task, state, {"model": second}, batches_of(TEN, size=3))
    served = F.cross_entropy(task.logits(second, held.x), held.y)
    assert float(later["gap"]) == pytest.approx(float(served - own), rel=1e-4)


def test_held_out_samples_are_not_trained_on() -> None:
    """A client that has only the others, in batches that agree, comes to the same model."""
    task, method = mlp_task(), FedGA()
    ours, _ = method.local(task, method.client(task), {"model": task.initial}, batches_of(TEN, size=5))
    alone, _ = FedAvg().local(task, {}, {"model": task.initial}, batches_of(part(TEN, KEPT), size=4))
    assert close(ours["model"], alone["model"], tolerance=1e-6)
    strange = TEN.x.index_fill(0, HELD, 50.0)
    other, _ = method.local(
        task, method.client(task), {"model": task.initial}, batches_of(Samples(strange, TEN.y), size=5)
    )
    assert close(ours["model"], other["model"], tolerance=1e-6)


@pytest.mark.parametrize(("share", "held"), [(0.2, 2), (0.5, 5), (0.3, 3), (0.05, 0)])
def test_the_share_that_is_held_out(share: float, held: int) -> None:
    assert int(FedGA(held_out=share).is_held_out(torch.arange(10)).sum()) == held


def test_stacked_clients_hold_out_the_same_samples() -> None:
    shares = []
    for kind in (LoopHost, StackedHost):
        run, _ = federation(FedGA(held_out=0.4), mlp_task(), uneven_clients(), epochs=2, kind=kind)
        for _ in range(3):
            run.advance()
        shares.append(run.server["shares"])
    assert not torch.allclose(shares[0], torch.full_like(shares[0], 1 / 3), atol=1e-3)
    torch.testing.assert_close(*shares, rtol=0, atol=1e-5)


def test_without_step_and_held_out_samples_it_is_fedavg_with_uniform_weights() -> None:
    ours = server_after(2, FedGA(step=0.0, held_out=0.0), mlp_task(), uneven_clients())["model"]
    plain = server_after(2, FedAvg(weighting="uniform"), mlp_task(), uneven_clients())["model"]
    assert equal(ours, plain)
