"""Networks of timm as models, group norm in place of batch norm, and the CNN's options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from bench.errors import UserError
from bench.models import model_options, model_spec
from bench.models.architectures.timm import TimmModel
from bench.models.base import seeded_model
from bench.suite.loading import load_suite
from bench.suite.planning import plan_cells
from methods.modules.split_model import SplitModel
from tests.kit.cli import write_suite
from tests.kit.tiny import draw

SHAPE, CLASSES = (3, 32, 32), 5


def built(seed: int = 0, shape: tuple[int, ...] = SHAPE, **options: Any) -> SplitModel:
    return seeded_model(model_spec({"name": "timm", "source": "resnet10t"} | options), shape, CLASSES, seed)


def pictures() -> Tensor:
    return torch.randint(0, 256, (2, *SHAPE), generator=draw(0), dtype=torch.uint8)


def kinds(model: nn.Module) -> set[type[nn.Module]]:
    return {type(part) for part in model.modules()}


def map_side(model: SplitModel) -> int:
    """Of the last map before pooling."""
    network: Any = model.encoder[1]  # type: ignore[index]
    return int(network.eval().forward_features(torch.zeros(1, *SHAPE)).shape[-1])


@pytest.mark.parametrize("source", ["resnet10t", "resnet18"])
def test_a_resnet_is_split_before_its_classifier(source: str) -> None:
    model = built(source=source).eval()
    z = model.encoder(pictures())
    assert z.shape == (2, 512) and model.feature_size == model.embedding_size == 512
    assert torch.equal(model.classifier(z), model(pictures())) and model(pictures()).shape == (2, CLASSES)
    assert nn.BatchNorm2d in kinds(model) and nn.GroupNorm not in kinds(model)


def test_group_norm_replaces_every_batch_norm_and_nothing_else() -> None:
    batch, group = built(), built(norm="group")
    assert nn.BatchNorm2d not in kinds(group) and nn.GroupNorm in kinds(group)
    assert not [name for name, _ in group.named_buffers() if "running" in name]
    for (name, old), (other, new) in zip(batch.named_parameters(), group.named_parameters(), strict=True):
        assert name == other and torch.equal(old, new)
    layers = [part for part in built(norm="group", groups=24).modules() if isinstance(part, nn.GroupNorm)]
    assert {layer.num_channels % layer.num_groups for layer in layers} == {0}
    assert {layer.num_groups for layer in layers} == {8, 24}, "the largest that divides 24 and the channels"


@pytest.mark.parametrize("source", ["resnet10t", "resnet18"])
def test_a_small_stem_keeps_the_size_of_the_picture(source: str) -> None:
    assert map_side(built(source=source)) == 1
    assert map_side(built(source=source, stem="small")) == 4


def test_the_short_name_is_the_same_model(tmp_path: Path) -> None:
    assert model_options({"name": "timm:resnet18"}) == {"name": "timm", "source": "resnet18"}
    cells = []
    for model in ("timm:resnet18", {"name": "timm:resnet18"}, {"name": "timm", "source": "resnet18"}):
        cells.append(plan_cells(load_suite(str(write_suite(tmp_path, model=model))))[0])
    assert len({cell.cell_id for cell in cells}) == 1
    assert cells[0].config.model.model_dump() == {
        "name": "timm",
        "source": "resnet18",
        "norm": "batch",
        "weights": "random",
    }
    changed = load_suite(str(write_suite(tmp_path))).changed({"model": "timm:resnet18"})
    assert plan_cells(changed)[0].cell_id == cells[0].cell_id


def test_weights_from_a_file_are_taken_and_identify_the_model(tmp_path: Path) -> None:
    import timm

    theirs: Any = timm.create_model("resnet10t", num_classes=9)
    torch.save(theirs.state_dict(), tmp_path / "weights.pt")
    spec = model_spec({"name": "timm:resnet10t", "weights": str(tmp_path / "weights.pt")})
    assert isinstance(spec, TimmModel) and spec.sha256 is not None
    model = seeded_model(spec, SHAPE, CLASSES, 0)
    network: Any = model.encoder[1]  # type: ignore[index]
    assert torch.equal(network.layer4[0].conv1.weight, theirs.layer4[0].conv1.weight)
    assert model.classifier.weight.shape == (CLASSES, 512)
    torch.save(theirs.layer1.state_dict(), tmp_path / "weights.pt")
    with pytest.raises(UserError, match="has the checksum"):
        seeded_model(spec, SHAPE, CLASSES, 0)
    with pytest.raises(UserError, match="has no tensor for"):
        built(weights=str(tmp_path / "weights.pt"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"source": "resnet11"}, "timm has no such network"),
        ({"source": "convnext_atto", "norm": "group"}, "no batch norm to replace"),
        ({"source": "mobilenetv3_small_050", "norm": "group"}, "which is more than a batch norm"),
        ({"source": "mobilenetv3_small_050", "stem": "small"}, "is for ResNets"),
        ({"norm": "layer"}, "norm"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        built(**options)
    with pytest.raises(UserError, match="takes pictures"):
        built(shape=(12,))


def test_the_cnns_options_are_other_readings_of_the_same_network() -> None:
    plain = model_spec({"name": "cnn"})
    assert set(plain.model_dump()) == {"channels", "features", "embedding", "grid"}
    spec = model_spec(
        {"name": "cnn", "use_bn": True, "dropout": 0.5, "projector_layers": 2, "classifier_hidden": 256}
    )
    model = seeded_model(spec, SHAPE, CLASSES, 0).eval()
    layers = [part for part in model.modules() if isinstance(part, nn.Linear)]
    widths = [(layer.in_features, layer.out_features) for layer in layers]
    assert widths == [(4096, 512), (512, 512), (512, 128), (128, 256), (256, CLASSES)]
    assert sum(isinstance(part, nn.BatchNorm2d) for part in model.modules()) == 2
    assert model(pictures()).shape == (2, CLASSES)
