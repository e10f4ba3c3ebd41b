"""`aligned+METHOD`: FedSDG's server around any method whose server averages models."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from bench.engine.clients.loop import LoopHost
from bench.errors import UserError
from bench.suite.methods import METHODS
from bench.validation import validated
from methods.fedavg import FedAvg
from methods.fedsdg import FedSDG
from tests.kit.contract import PLAIN, make_method, run, tiny_problem, tiny_task, with_infinite_inputs
from tests.kit.tiny import equal

ALIGNABLE = [name for name in METHODS.names() if METHODS.load(name).aggregate is FedAvg.aggregate]


def test_methods_that_change_only_local_work_can_be_aligned() -> None:
    assert {"fedavg", "fedprox", "moon", "fedntd", "fedlora", "ditto", "fedmix"} <= set(ALIGNABLE)
    for name in ALIGNABLE:
        assert make_method(f"aligned+{name}").label == f"Aligned+{METHODS.load(name).label}"


@pytest.mark.parametrize("name", ["scaffold", "feddyn", "fedadam", "fedsdg", "local", "ggeur+fedavg"])
def test_methods_that_aggregate_in_their_own_way_are_refused(name: str) -> None:
    with pytest.raises(UserError) as refusal:
        validated(METHODS.load(f"aligned+{name}"), {}, f"method 'aligned+{name}'")
    assert str(refusal.value) == (
        f"method 'aligned+{name}': cannot align {METHODS.load(name).label}, which aggregates in its own way; "
        "choose a method whose server takes FedAvg's average, as in aligned+fedprox"
    )


def test_it_is_the_server_of_fedsdg() -> None:
    """Around the same replies, FedSDG and an aligned method give the same model to the last bit."""
    task = tiny_task("vit", PLAIN, 3, 0)
    problem = tiny_problem(make_method("fedlora"))
    host = LoopHost(problem)
    replies = host.run(0, 1, [(client, {"model": task.initial}) for client in problem.train])
    sdg, aligned = FedSDG(), make_method("aligned+fedlora")
    by_sdg = sdg.aggregate(task, sdg.server(task), replies)
    by_aligned = aligned.aggregate(task, aligned.server(task), replies)
    assert equal(by_sdg["model"], by_aligned["inner"]["model"])
    assert torch.equal(by_sdg["alignment"]["weights"], by_aligned["alignment"]["weights"])


def test_its_options_are_hyperparameters_of_its_own() -> None:
    method = validated(
        METHODS.load("aligned+fedprox"), {"weighting": "softmax", "inner": {"mu": 0.3}}, "method"
    )
    chosen = method.model_dump()
    inner = chosen["inner"]
    assert (chosen["weighting"], inner["weighting"], inner["mu"]) == ("softmax", "samples", 0.3)
    assert "alignment" not in FedAvg.model_fields


def test_leaving_out_the_head_needs_adapters() -> None:
    method = make_method("aligned+fedavg", cosine_on="lora")
    with pytest.raises(ValueError, match="needs a model with adapters"):
        method.check(tiny_task("mlp", PLAIN, 2, 0))
    method.check(tiny_task("vit", PLAIN, 2, 0))


def test_a_client_with_infinite_data_is_left_out() -> None:
    problem = with_infinite_inputs(tiny_problem(make_method("aligned+fedavg")), client=1)
    server = run(problem, LoopHost(problem), rounds=1).server
    assert server["alignment"]["clients"].tolist() == [0, 2]
    leaves: list[Tensor] = list(server["inner"]["model"].values())
    assert all(bool(torch.isfinite(leaf).all()) for leaf in leaves)


def test_the_record_of_a_round_has_its_figures() -> None:
    problem = tiny_problem(make_method("aligned+fedlora"))
    metrics = run(problem, LoopHost(problem), rounds=1, participation=0.7).advance()["metrics"]
    weights = {name: value for name, value in metrics.items() if name.startswith("weight/")}
    assert len(weights) == 2
    assert sum(weights.values()) == pytest.approx(1)
    shares = np.array(list(weights.values()))
    assert metrics["weight_entropy"] == pytest.approx(-(shares * np.log(shares)).sum())
    assert metrics["weight_mean"] == pytest.approx(0.5)
    assert metrics["weight_std"] == pytest.approx(shares.std())
    assert (metrics["weight_min"], metrics["weight_max"]) == (shares.min(), shares.max())
    assert {"alpha_mean", "alpha_std", "alpha_min", "alpha_max", "alpha_entropy", "alpha_zeros"} <= set(
        metrics
    )


def test_it_goes_inside_another_wrapper() -> None:
    problem = tiny_problem(make_method("ggeur+aligned+fedavg", samples_per_class=4))
    federation = run(problem, LoopHost(problem), rounds=1)
    assert federation.server["inner"]["alignment"]["clients"].tolist() == [0, 1, 2]
