"""Adapters made by PEFT: what a layer computes, every kind alone and in a stack, places, and refusals."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn
from torch.func import functional_call

from bench.contract.fixtures import samples
from bench.contract.models import Vit
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.federation import Federation
from bench.engine.problem import Problem
from bench.errors import UserError
from bench.models import model_spec
from bench.models.adapters import ALIASES, PROVEN, AdapterSpec, with_adapter
from bench.models.base import seeded_model
from methods.core.optimisers import Adam
from methods.core.task import Task, initial_tree
from methods.fedlora import FedLoRA
from methods.fedsdg import FedSDG
from methods.modules.lora import adapted_layers, blocks_of, lora_layers
from methods.modules.split_model import SplitModel

OPTIONS: dict[str, dict[str, Any]] = {"ia3": {}, "road": {"group_size": 2}}


def vit(**adapter: Any) -> SplitModel:
    return seeded_model(Vit(adapter=AdapterSpec(**adapter)), (3, 8, 8), 3, seed=0)


def task_with(model: SplitModel) -> Task:
    return Task(model, initial_tree(model), 3, 3, Adam(lr=0.01), 0)


# One layer


def layer_and_values() -> tuple[nn.Module, dict[str, torch.Tensor], torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 4))
    with_adapter(model, AdapterSpec(r=2, alpha=6.0), targets=["0"])
    shapes = {"A": (2, 5), "B": (4, 2)}
    values = {
        f"lora_{factor}.{adapter}.weight": torch.randn(shapes[factor], generator=draw)
        for adapter, factor in itertools.product(("shared", "private"), "AB")
    }
    return model[0], values, torch.randn(3, 5, generator=draw)


def test_branches_are_summed() -> None:
    layer, values, x = layer_and_values()
    v = {name: value.numpy().astype(np.float64) for name, value in values.items()}
    frozen: torch.Tensor = layer.base_layer(x)  # type: ignore[operator]
    branch = {
        name: 3.0 * x.numpy() @ v[f"lora_A.{name}.weight"].T @ v[f"lora_B.{name}.weight"].T
        for name in ("shared", "private")
    }
    both = functional_call(layer, values, (x,)).detach().numpy()
    expected = frozen.detach().numpy() + branch["shared"]
    np.testing.assert_allclose(both, expected + branch["private"], atol=1e-5)
    shared = {name: value for name, value in values.items() if "shared" in name}
    np.testing.assert_allclose(functional_call(layer, shared, (x,)).detach(), expected, atol=1e-5)


def test_a_private_branch_leaves_no_trace_in_the_model() -> None:
    layer, values, x = layer_and_values()
    functional_call(layer, values, (x,))
    names = {"lora_A.shared.weight", "lora_B.shared.weight", "base_layer.weight", "base_layer.bias"}
    assert set(dict(layer.named_parameters())) == names
    assert set(layer.state_dict()) == names


def test_our_sum_is_peft_s_own() -> None:
    from peft.tuners.lora.layer import Linear

    layer, values, x = layer_and_values()
    shared = {name: value for name, value in values.items() if "shared" in name}
    with torch.no_grad():
        for name, value in shared.items():
            layer.get_parameter(name).copy_(value)
        assert isinstance(layer, Linear)
        torch.testing.assert_close(layer(x), Linear.forward(layer, x))


# Every kind


@pytest.mark.parametrize("name", [*PROVEN, *ALIASES])
def test_every_kind_trains_alike_alone_and_in_a_stack(name: str) -> None:
    model = vit(name=name, **OPTIONS.get(name, {"r": 2}))
    task = task_with(model)
    adapters = {leaf for leaf in task.initial if not leaf.startswith("classifier.")}
    assert len(adapted_layers(model)) == 4
    assert adapters
    assert adapters <= task.trainable, "nothing else than what is trained travels"
    assert not any(leaf.requires_grad for leaf_name, leaf in model.named_parameters() if "base_" in leaf_name)
    train = {k: samples(size, (3, 8, 8), f"client {k}") for k, size in enumerate((5, 3))}
    results = []
    for host in (LoopHost, StackedHost):
        problem = Problem(task, FedLoRA(), 1, 4, train=train, validation={}, test={}, own_test={})
        federation = Federation(problem, host(problem))
        assert federation.advance()["dropped"] == 0
        federation.advance()
        results.append(federation.server["model"])
    for leaf, start in task.initial.items():
        torch.testing.assert_close(results[0][leaf], results[1][leaf], atol=1e-5, rtol=0)
        assert (results[0][leaf] - start).abs().max() > 1e-4, leaf


def test_the_head_s_first_weights_do_not_depend_on_the_adapter() -> None:
    heads = [vit(name=name).classifier.weight for name in ("vera", "miss", "hra")]
    assert torch.equal(heads[0], heads[1])  # type: ignore[arg-type]
    assert torch.equal(heads[0], heads[2])  # type: ignore[arg-type]


# Places and options


def test_blocks_are_told_from_the_names() -> None:
    assert blocks_of(["layer.1.q", "layer.1.v", "layer.4.q"]) == {
        "layer.1.q": 0,
        "layer.1.v": 0,
        "layer.4.q": 1,
    }
    assert blocks_of(["only.one"]) == {"only.one": 0}
    assert blocks_of([]) == {}


def test_targets_and_further_options_are_peft_s() -> None:
    model = vit(name="lora", r=3, alpha=6, targets=["attn.qkv"], init_lora_weights="gaussian")
    layers = lora_layers(model)
    assert [name.split(".", 3)[3] for name in layers] == ["0.attn.qkv", "1.attn.qkv"]
    assert {(layer.r["shared"], layer.scaling["shared"]) for layer in layers.values()} == {(3, 2.0)}
    everywhere = vit(name="lora", targets="all-linear")
    assert len(lora_layers(everywhere)) == 8


def test_defaults_leave_no_trace_in_a_cell_and_an_adapter_replaces_rank_and_alpha() -> None:
    assert model_spec({"name": "vit_mini"}).model_dump(mode="json") == {"rank": 8, "alpha": 16.0}
    spec = model_spec({"name": "vit_mini", "adapter": {"name": "dora", "r": 4}})
    values = spec.model_dump(mode="json")
    assert values == {"adapter": {"name": "dora", "r": 4}}
    assert model_spec({"name": "vit_mini", **values}) == spec
    with pytest.raises(ValidationError, match="no place for rank and alpha"):
        Vit(rank=3, adapter=AdapterSpec())


# Refusals


@pytest.mark.parametrize(
    ("adapter", "sentence"),
    [
        ({"name": "lorra"}, "'lorra' is not known to PEFT; did you mean 'lora'"),
        ({"name": "loha"}, "'loha' does not train in stacks of clients"),
        ({"name": "prompt_tuning"}, "'prompt_tuning' does not train"),
        ({"name": "ia3", "r": 3}, "the kind 'ia3' has no rank; leave the key out"),
        ({"name": "lora", "use_dorra": True}, "'lora' has no key 'use_dorra'; did you mean 'use_dora'"),
        ({"name": "lora", "lora_dropout": 0.1}, "lora_dropout: would not draw the same in a stack"),
        ({"name": "lora", "targets": ["patch_embed.proj"]}, "adapters go on linear layers"),
        ({"name": "lora", "targets": ["no_such_layer"]}, "PEFT refuses it"),
    ],
)
def test_what_does_not_work_is_refused_in_one_sentence(adapter: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence) as refusal:
        vit(**adapter)
    assert "\n" not in str(refusal.value)


def test_fedsdg_asks_for_plain_lora() -> None:
    FedSDG().check(task_with(vit(name="rslora")))
    for name in ("dora", "ia3"):
        with pytest.raises(ValueError, match="needs plain LoRA adapters on linear layers"):
            FedSDG().check(task_with(vit(name=name)))
