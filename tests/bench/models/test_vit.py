"""The frozen transformers: what trains and travels, what branches compute, where the weights come from."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from bench.engine.assembly import assemble
from bench.engine.executors import choose
from bench.errors import UserError
from bench.models import model_spec
from bench.models.architectures.vit_mini import SHA256, WEIGHTS
from bench.models.base import seeded_model
from bench.models.vit import load_weights, small_vit
from methods.core.task import initial_tree
from methods.modules.lora import blocks_of, lora_layers
from methods.modules.split_model import SplitModel
from tests.kit.contract_cells import cell_config


@pytest.fixture(scope="module")
def mini() -> SplitModel:
    return seeded_model(model_spec({"name": "vit_mini"}), (3, 32, 32), 10, seed=0)


def images(count: int = 4, side: int = 32) -> torch.Tensor:
    draw = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, 3, side, side), generator=draw, dtype=torch.uint8)


# vit_mini


def test_the_weights_are_small_and_those_recorded() -> None:
    assert WEIGHTS.stat().st_size <= 2_000_000
    assert hashlib.sha256(WEIGHTS.read_bytes()).hexdigest() == SHA256


def test_six_blocks_have_two_adapted_layers_each(mini: SplitModel) -> None:
    layers = lora_layers(mini)
    assert list(blocks_of(layers).values()) == [block for block in range(6) for _ in range(2)]
    assert {name.split("blocks.")[1][2:] for name in layers} == {"attn.proj", "mlp.fc2"}
    assert {(layer.r["shared"], layer.scaling["shared"]) for layer in layers.values()} == {(8, 2.0)}


def test_only_adapters_and_head_are_trained_sent_and_saved(mini: SplitModel) -> None:
    initial = initial_tree(mini)
    layers = lora_layers(mini)
    expected = {f"{layer}.lora_{factor}.shared.weight" for layer in layers for factor in "AB"}
    assert set(initial) == expected | {"classifier.weight", "classifier.bias"}
    for layer in layers:
        assert not initial[f"{layer}.lora_B.shared.weight"].any()
        assert initial[f"{layer}.lora_A.shared.weight"].std() > 0.01


def test_backbone_is_the_same_at_every_seed_and_the_rest_is_not(mini: SplitModel) -> None:
    other = seeded_model(model_spec({"name": "vit_mini"}), (3, 32, 32), 10, seed=1)
    frozen = [
        (a, b) for a, b in zip(mini.parameters(), other.parameters(), strict=True) if not a.requires_grad
    ]
    assert frozen
    assert all(torch.equal(a, b) for a, b in frozen)
    assert not torch.equal(mini.classifier.weight, other.classifier.weight)  # type: ignore[arg-type]


def test_pretrained_features_tell_handwritten_digits_apart_better_than_random_ones(mini: SplitModel) -> None:
    """By the class means of one half, on the other half."""
    from bench.data.datasets.digits_mini import DigitsMini

    split = DigitsMini().build(None, "mnist").test
    x, y = torch.from_numpy(split.x), torch.from_numpy(split.y)

    def accuracy(model: SplitModel) -> float:
        with torch.no_grad():
            z = model.encoder(x)
        learnt = torch.arange(len(y)) % 2 == 0
        means = torch.stack([z[learnt & (y == label)].mean(dim=0) for label in range(10)])
        nearest = torch.cdist(z[~learnt], means).argmin(dim=1)
        return float((nearest == y[~learnt]).float().mean())

    untrained = seeded_model(model_spec({"name": "vit_mini"}), (3, 32, 32), 10, seed=0)
    untrained.encoder[1].load_state_dict(small_vit().state_dict(), strict=False)  # type: ignore[index]
    assert accuracy(mini) > accuracy(untrained) + 0.1


@pytest.mark.parametrize("shape", [(3, 28, 28), (1, 32, 32), (64,)])
def test_images_of_another_size_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match="takes images of 3×32×32, not"):
        model_spec({"name": "vit_mini"}).build(shape, 10)


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "vit_mini.safetensors"
    file.write_bytes(WEIGHTS.read_bytes()[:-1] + b"\x01")
    with pytest.raises(UserError, match="has the checksum"):
        load_weights(file, SHA256)


def test_the_fingerprint_covers_the_frozen_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.models.architectures import vit_mini

    before = assemble(cell_config("fedlora", "vit")).fingerprints.initial_weights
    load = vit_mini.load_weights

    def changed(*arguments: Any) -> dict[str, torch.Tensor]:
        tensors = load(*arguments)
        return tensors | {"pos_embed": tensors["pos_embed"] + 1}

    monkeypatch.setattr(vit_mini, "load_weights", changed)
    assert assemble(cell_config("fedlora", "vit")).fingerprints.initial_weights != before


# vit_lora


def lora(**options: Any) -> SplitModel:
    return seeded_model(model_spec({"name": "vit_lora", **options}), (3, 32, 32), 7, seed=0)


def test_any_vit_of_timm_and_images_of_another_size() -> None:
    model = lora(weights="random")
    assert model(images(2)).shape == (2, 7)
    assert len(lora_layers(model)) == 24
    trained = sum(leaf.numel() for leaf in model.parameters() if leaf.requires_grad)
    assert trained == 12 * 8 * (192 + 192 + 768 + 192) + 192 * 7 + 7


def test_weights_come_from_a_file(tmp_path: Path) -> None:
    backbone = lora(weights="random").encoder[-1]  # type: ignore[index]
    plain = {name.replace(".base_layer.", "."): leaf for name, leaf in backbone.state_dict().items()}
    tensors = {name: leaf + 0.5 for name, leaf in plain.items() if "lora_" not in name}
    for file in (tmp_path / "weights.safetensors", tmp_path / "weights.pth"):
        if file.suffix == ".pth":
            torch.save(tensors, file)
        else:
            save_file(tensors, file)
        loaded = lora(weights=str(file)).encoder[-1].state_dict()  # type: ignore[index]
        assert torch.equal(loaded["blocks.3.mlp.fc2.base_layer.weight"], tensors["blocks.3.mlp.fc2.weight"])
        assert torch.equal(loaded["pos_embed"], tensors["pos_embed"])
    with pytest.raises(UserError, match="has the checksum"):
        lora(weights=str(file), sha256="0" * 64)
    torch.save({"pos_embed": tensors["pos_embed"]}, file)
    with pytest.raises(UserError, match=r"has no tensor for .blocks\.0\.attn\.proj\.bias"):
        lora(weights=str(file))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"weights": "no/such/file.pth"}, "there is no weights file"),
        ({"backbone": "vit_tinny_patch16_224", "weights": "random"}, "did you mean 'vit_tiny_patch16_224'"),
        ({"backbone": "resnet18", "weights": "random"}, "timm has no such ViT"),
    ],
)
def test_mistakes_are_told_in_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        lora(**options)


# Which executor


def test_a_frozen_transformer_is_stacked_unless_clients_are_too_unequal() -> None:
    problem = assemble(cell_config("fedlora", "vit")).problem
    assert choose(problem)[0] == "stacked"
    largest = max(problem.train, key=lambda client: len(problem.train[client].y))
    x, y = problem.train[largest]
    problem.train[largest] = type(problem.train[largest])(torch.cat([x] * 9), torch.cat([y] * 9))  # type: ignore[index]
    assert choose(problem) == ("loop", "clients of such unequal sizes would be stacked mostly with padding")
