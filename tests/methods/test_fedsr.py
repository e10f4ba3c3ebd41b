"""FedSR: random features, two penalties, and predictions that are averages."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch.distributions import Normal, kl_divergence

from methods.fedsr import MEAN, SCALE, SPREAD, WEIGHT, FedSR, class_divergence, distribution
from tests.kit.tiny import (
    a_batch,
    cnn_task,
    frozen_task,
    mlp_task,
    nearby,
    samples,
    server_after,
)


def test_mean_and_deviation_are_two_halves_of_one_layer() -> None:
    """On the features before the projector, as in the public code."""
    task = cnn_task()
    params = nearby(FedSR().server(task)["model"], 1)
    x = samples([0, 1], seed=2, shape=(1, 8, 8)).x
    features = task.encode(params, x)
    weight = torch.cat([params["projector.weight"], params[WEIGHT]])
    both = F.linear(features, weight, torch.cat([params["projector.bias"], params["latent.sigma.bias"]]))
    mean, sigma = distribution(task, params, x)
    torch.testing.assert_close(
        torch.cat([mean, sigma], dim=1), torch.cat([both[:, :4], F.softplus(both[:, 4:])], 1)
    )


@pytest.mark.parametrize("scale", [1.3, -0.7])
def test_the_divergence_is_that_of_torch(scale: float) -> None:
    """Its value, which a loss records; training shows only its gradient."""
    task, batch = mlp_task(), a_batch()
    params = nearby(FedSR().server(task)["model"], 3)
    params = params | params.only([SCALE]).map(lambda leaf: torch.full_like(leaf, scale))
    mean, sigma = distribution(task, params, batch.x)
    own = Normal(scale * mean, abs(scale) * sigma)
    expected = kl_divergence(own, Normal(params[MEAN][batch.y], F.softplus(params[SPREAD])[batch.y])).sum(
        dim=1
    )
    torch.testing.assert_close(class_divergence(params, mean, sigma, batch.y), expected, rtol=1e-4, atol=1e-5)


def test_a_prediction_depends_on_the_sample_and_the_seed_alone() -> None:
    task, method = mlp_task(), FedSR()
    server, x = method.server(task), a_batch().x
    whole = method.predict(task, server, None, x)
    torch.testing.assert_close(whole[3:5], method.predict(task, server, None, x[3:5]))
    assert not torch.allclose(whole, method.predict(replace(task, seed=1), server, None, x), atol=1e-4)


def test_it_learns_what_the_classes_are() -> None:
    clients = [samples([k % 3 for k in range(30)], seed) for seed in (1, 2, 3)]
    clients = [data._replace(x=data.x + 3 * F.one_hot(data.y, 5)) for data in clients]
    method, task = FedSR(), mlp_task()
    server = server_after(8, method, task, clients, epochs=2)
    right = method.predict(task, server, None, clients[0].x).argmax(dim=1) == clients[0].y
    assert float(right.float().mean()) > 0.85


def test_a_frozen_encoder_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing before the classifier"):
        FedSR().check(frozen_task())
