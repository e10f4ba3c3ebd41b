"""`dp+METHOD`: clipping and noise against NumPy, and ε against accountants and a closed form."""

from __future__ import annotations

import math
from typing import Any

import dp_accounting
import numpy as np
import pytest
import torch
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.stats import norm

from bench.engine.clients.loop import LoopHost
from bench.engine.federation import Federation
from bench.errors import UserError
from bench.suite.methods import METHODS
from bench.validation import validated
from methods.shared import accounting
from methods.shared.accounting import epsilon
from methods.shared.vectors import flattened
from tests.kit.contract import PLAIN, make_method, run, tiny_problem, tiny_task, with_infinite_inputs

RELATION = dp_accounting.NeighboringRelation


def vector(tree: Any) -> np.ndarray[Any, Any]:
    return flattened(tree).double().numpy()


def updates_of_fedavg(problem: Any) -> np.ndarray[Any, Any]:
    task, host = problem.task, LoopHost(problem)
    messages = [(client, {"model": task.initial}) for client in problem.train]
    return np.stack(
        [vector(each.content["model"]) - vector(task.initial) for each in host.run(0, 1, messages)]
    )


def test_the_mean_is_over_the_planned_clients_whoever_diverges() -> None:
    method = make_method("dp+fedavg", clip=0.1, noise_multiplier=0.0)
    problem = with_infinite_inputs(tiny_problem(method), client=1)
    server = run(problem, LoopHost(problem), rounds=1).server
    updates = updates_of_fedavg(tiny_problem(make_method("fedavg")))[[0, 2]]
    clipped = 0.1 * updates / np.linalg.norm(updates, axis=1, keepdims=True)
    expected = vector(problem.task.initial) + clipped.sum(axis=0) / 3
    np.testing.assert_allclose(vector(server["inner"]["model"]), expected, atol=1e-6)


def test_the_noise_has_the_stated_size_and_is_new_in_every_round() -> None:
    """N(0, (zS/m)²): the differences to a run without noise, of a model with 83 numbers, over rounds."""
    z, clip, rounds = 2.0, 1e-4, 30
    noises = []
    problem = tiny_problem(make_method("dp+fedavg", clip=clip, noise_multiplier=z))
    federation = Federation(problem, LoopHost(problem), participation=0.7)
    for _ in range(rounds):
        before = vector(federation.server["inner"]["model"])
        federation.advance()
        noises.append(vector(federation.server["inner"]["model"]) - before)
    found = np.stack(noises)
    # two clients per round; a clipped mean adds at most S² / d to the variance, a hundredth of the noise's
    assert found.std() == pytest.approx(z * clip / 2, rel=0.05)
    assert abs(np.corrcoef(found[0], found[1])[0, 1]) < 0.4


def test_a_server_optimiser_steps_along_the_noisy_mean() -> None:
    problem = tiny_problem(make_method("dp+fedadam", noise_multiplier=0.0))
    server = run(problem, LoopHost(problem), rounds=1).server["inner"]
    updates = updates_of_fedavg(tiny_problem(make_method("fedavg")))
    mean = (updates * np.minimum(1, 1 / np.linalg.norm(updates, axis=1))[:, None]).mean(axis=0)
    momentum, second = 0.1 * mean, 0.99 * 1e-6 + 0.01 * mean**2
    expected = vector(problem.task.initial) + 0.01 * momentum / (np.sqrt(second) + 1e-3)
    np.testing.assert_allclose(vector(server["model"]), expected, atol=1e-6)


# ε


@pytest.mark.parametrize(("z", "rounds"), [(1.0, 1), (1.0, 30), (4.0, 30), (0.7, 5)])
def test_epsilon_without_sampling_is_that_of_the_gaussian_mechanism(z: float, rounds: int) -> None:
    """δ = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) with μ = √T / z (Balle and Wang 2018), and an accountant's."""
    found, mu = epsilon(z, rounds, 1e-5), math.sqrt(rounds) / z
    delta = norm.cdf(mu / 2 - found / mu) - math.exp(found) * norm.cdf(-mu / 2 - found / mu)
    assert delta == pytest.approx(1e-5, rel=1e-4)
    accountant = PLDAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(z), rounds)
    assert found == pytest.approx(accountant.get_epsilon(1e-5), abs=1e-3)


def test_epsilon_with_sampling_is_an_accountants() -> None:
    gaussian = dp_accounting.GaussianDpEvent
    poisson = RdpAccountant(neighboring_relation=RELATION.ADD_OR_REMOVE_ONE)
    poisson.compose(dp_accounting.PoissonSampledDpEvent(0.1, gaussian(1.1)), 50)
    assert epsilon(1.1, 50, 1e-6, "poisson", 10, 100) == pytest.approx(poisson.get_epsilon(1e-6), abs=1e-3)
    fixed = RdpAccountant(neighboring_relation=RELATION.REPLACE_ONE)
    fixed.compose(dp_accounting.SampledWithoutReplacementDpEvent(100, 10, gaussian(0.55)), 50)
    found = epsilon(1.1, 50, 1e-6, "without_replacement", 10, 100)
    assert found == pytest.approx(fixed.get_epsilon(1e-6), abs=1e-3)
    assert epsilon(1.1, 50, 1e-6, "poisson", 10, 100) < found < epsilon(1.1, 50, 1e-6)


@pytest.mark.parametrize("amplification", ["none", "poisson", "without_replacement"])
def test_the_record_of_a_round_has_epsilon(amplification: Any) -> None:
    method = make_method("dp+fedavg", noise_multiplier=3.0, amplification=amplification)
    problem = tiny_problem(method)
    federation = Federation(problem, LoopHost(problem), participation=0.7)
    found = [federation.advance()["metrics"]["epsilon"] for _ in range(3)]
    assert found == [epsilon(3.0, rounds, 1e-5, amplification, 2, 3) for rounds in (1, 2, 3)]
    assert found == sorted(found)


def test_without_noise_there_is_no_epsilon() -> None:
    problem = tiny_problem(make_method("dp+fedavg", noise_multiplier=0.0))
    assert "metrics" not in run(problem, LoopHost(problem), rounds=0).advance()


# Refusals


@pytest.mark.parametrize("name", ["scaffold", "fedproto", "feddyn", "aligned+fedavg", "compressed+fedavg"])
def test_methods_that_send_more_than_a_model_are_refused(name: str) -> None:
    with pytest.raises(UserError, match=r"cannot add noise to .*whose server does more than average models"):
        validated(METHODS.load(f"dp+{name}"), {}, "method")


@pytest.mark.parametrize("name", ["ggeur+fedavg", "fedmix"])
def test_nothing_may_be_sent_before_round_1(name: str) -> None:
    model = "head" if name.startswith("ggeur") else "mlp"
    with pytest.raises(ValueError, match="also sends something before round 1"):
        make_method(f"dp+{name}").check(tiny_task(model, PLAIN, 3, 0))


@pytest.mark.parametrize("wrapper", ["ggeur", "compressed", "robust", "aligned"])
def test_nothing_goes_around_it(wrapper: str) -> None:
    with pytest.raises(UserError, match=r"has to be the first wrapper|cannot"):
        validated(METHODS.load(f"{wrapper}+dp+fedavg"), {}, "method")


def test_batch_norm_is_refused() -> None:
    with pytest.raises(ValueError, match="would add noise to the statistics of batch norm"):
        make_method("dp+fedavg").check(tiny_task("norm", PLAIN, 3, 0))


def test_a_missing_accountant_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounting, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"needs the package dp-accounting .* pip install"):
        make_method("dp+fedavg").check(tiny_task("mlp", PLAIN, 3, 0))


def test_an_unexpected_entry_of_a_reply_does_not_pass() -> None:
    problem = tiny_problem(make_method("dp+fedavg"))
    method, task = problem.method, problem.task
    host = LoopHost(problem)
    replies = host.run(0, 1, [(client, {"model": task.initial}) for client in problem.train])
    replies[0].content["secret"] = torch.zeros(1)
    with pytest.raises(ValueError, match="sends secret, which has no noise"):
        method.aggregate(task, method.server(task), replies)
