"""FedAvgM, FedAdam, FedYogi and FedAdagrad: buffers and records."""

import pytest
import torch

from methods.base import Task, Tree
from methods.fedadagrad import FedAdagrad
from methods.fedadam import FedAdam
from methods.fedavg import FedAvg
from methods.fedavgm import FedAvgM
from methods.fedyogi import FedYogi
from methods.shared.server_optimisers import FedOpt
from tests.kit.tiny import batch_norm_task, mlp_task, nearby, reply

SIZES = (7, 12, 5)


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
