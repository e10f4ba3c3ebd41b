"""FedAvgM, FedAdam, FedYogi and FedAdagrad: the server's steps against numpy."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from methods.base import FedAlgorithm, Task, Tree
from methods.fedadagrad import FedAdagrad
from methods.fedadam import FedAdam
from methods.fedavg import FedAvg
from methods.fedavgm import FedAvgM
from methods.fedyogi import FedYogi
from methods.shared.server_optimisers import FedOpt
from tests.kit.tiny import batch_norm_task, equal, mlp_task, nearby, reply, server_after, uneven_clients

SIZES = (7, 12, 5)
Array = np.ndarray
Rule = Callable[[Array, dict[str, Array]], Array]
"""(Δ, memory) → what is added to x."""


def momentum(delta: Array, memory: dict[str, Array]) -> Array:
    memory["v"] = 0.8 * memory.get("v", 0 * delta) + delta
    return 0.5 * memory["v"]


def adaptive(
    delta: Array, memory: dict[str, Array], second: Array, beta1: float, lr: float, tau: float
) -> Array:
    memory["m"] = beta1 * memory.get("m", 0 * delta) + (1 - beta1) * delta
    memory["v"] = second
    return lr * memory["m"] / (np.sqrt(second) + tau)


def adam(delta: Array, memory: dict[str, Array]) -> Array:
    v = memory.get("v", 0 * delta + 0.01**2)
    return adaptive(delta, memory, 0.9 * v + 0.1 * delta**2, 0.7, 0.05, 0.01)


def yogi(delta: Array, memory: dict[str, Array]) -> Array:
    v = memory.get("v", 0 * delta + 0.01**2)
    return adaptive(delta, memory, v - 0.1 * delta**2 * np.sign(v - delta**2), 0.7, 0.05, 0.01)


def adagrad(delta: Array, memory: dict[str, Array]) -> Array:
    v = memory.get("v", 0 * delta + 0.01**2)
    return adaptive(delta, memory, v + delta**2, 0.0, 0.05, 0.01)


@pytest.mark.parametrize(
    ("method", "rule"),
    [
        (FedAvgM(server_lr=0.5, beta=0.8), momentum),
        (FedAdam(server_lr=0.05, beta1=0.7, beta2=0.9, tau=0.01), adam),
        (FedYogi(server_lr=0.05, beta1=0.7, beta2=0.9, tau=0.01), yogi),
        (FedAdagrad(server_lr=0.05, tau=0.01), adagrad),
    ],
    ids=lambda value: value.label if isinstance(value, FedAlgorithm) else "",
)
@pytest.mark.parametrize("weighting", ["samples", "uniform"])
def test_three_rounds_are_those_of_numpy(method: FedAlgorithm, rule: Rule, weighting: str) -> None:
    task = mlp_task()
    method = method.model_copy(update={"weighting": weighting})
    server = method.server(task)
    expected = {name: leaf.double().numpy() for name, leaf in task.initial.items()}
    memories: dict[str, dict[str, Array]] = {name: {} for name in expected}
    shares = np.array(SIZES if weighting == "samples" else (1, 1, 1)) / (24 if weighting == "samples" else 3)
    for number in range(3):
        models = [nearby(server["model"], seed=10 * number + k) for k in range(3)]
        replies = [reply(k, SIZES[k], model=model) for k, model in enumerate(models)]
        server = method.aggregate(task, server, replies)
        for name, x in expected.items():
            y = [model[name].double().numpy() for model in models]
            delta = sum(share * (each - x) for share, each in zip(shares, y, strict=True))
            expected[name] = x + rule(delta, memories[name])
    for name, x in expected.items():
        np.testing.assert_allclose(server["model"][name].numpy(), x, rtol=0, atol=2e-6)


def test_server_sgd_without_momentum_is_fedavg_to_the_last_bit() -> None:
    ends = [
        server_after(3, method, mlp_task(), uneven_clients(), epochs=2)["model"]
        for method in (FedAvgM(server_lr=1, beta=0), FedAvg())
    ]
    assert equal(*ends)


def test_a_smaller_server_step_goes_part_of_the_way() -> None:
    task = mlp_task()
    half, whole = (
        server_after(1, method, task, uneven_clients())["model"] - task.initial
        for method in (FedAvgM(server_lr=0.5), FedAvg())
    )
    assert float((2 * half - whole).norm()) < 1e-6 * float(whole.norm()) + 1e-6


@pytest.mark.parametrize("kind", [FedAvgM, FedAdam, FedYogi, FedAdagrad])
def test_buffers_are_averaged_and_not_stepped(kind: type[FedOpt]) -> None:
    task = batch_norm_task()
    method = kind(server_lr=0.5)
    server = method.server(task)
    models = [nearby(with_counter(task, k), seed=k) for k in range(3)]
    replies = [reply(k, SIZES[k], model=model) for k, model in enumerate(models)]
    after = method.aggregate(task, server, replies)["model"]
    for buffer in ("encoder.1.running_mean", "encoder.1.running_var"):
        mean = (
            torch.stack([size * model[buffer] for size, model in zip(SIZES, models, strict=True)]).sum(dim=0)
            / 24
        )
        assert torch.allclose(after[buffer], mean, atol=1e-6)
    assert int(after["encoder.1.num_batches_tracked"]) == 1
    average = FedAvg().average(replies)
    assert not torch.allclose(after["encoder.0.weight"], average["encoder.0.weight"])
    assert list(after) == list(task.initial)


def with_counter(task: Task, client: int) -> Tree:
    return task.initial | Tree({"encoder.1.num_batches_tracked": torch.tensor(client + 1)})


def test_norms_of_the_memory_are_recorded() -> None:
    task = mlp_task()
    method = FedAvgM(beta=0.9)
    replies = [reply(client, 1, model=task.initial + 1.0) for client in range(2)]
    server = method.aggregate(task, method.server(task), replies)
    count = sum(leaf.numel() for leaf in task.initial.values())
    assert method.observe(task, server) == {"momentum_norm": pytest.approx(count**0.5, rel=1e-5)}
