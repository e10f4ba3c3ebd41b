"""What the text tower of a CLIP model makes of class names; computed once and cached."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.encoders import EncoderSpec
from bench.encoders.entries import digest, sole_worker
from bench.encoders.weights import weights_checksum
from bench.errors import UserError

LAYOUT = 1


def text_features(
    encoder: EncoderSpec, class_names: Sequence[str], template: str, cache_root: Path
) -> np.ndarray:
    """float32 (C, D), not normalised: one row a class, for `template` with the name at its `{}`."""
    if template.count("{}") != 1:
        raise UserError(f"template '{template}' must have one {{}} for the class's name")
    prompts = [template.replace("{}", name.replace("_", " ")) for name in class_names]
    identity = {
        "layout": LAYOUT,
        "encoder": f"{encoder.library}:{encoder.model}",
        "weights": weights_checksum(encoder, cache_root),
        "prompts": prompts,
    }
    file = cache_root / "text" / f"{encoder.model}-{digest(identity)[:16]}.npy"
    if not file.exists():
        with sole_worker(file, f"text features by {encoder.name}"):
            if not file.exists():
                _save(file, _encoded(encoder, prompts))
    features: np.ndarray = np.load(file, mmap_mode="r")
    return features


def _encoded(encoder: EncoderSpec, prompts: list[str]) -> np.ndarray:
    import torch

    from bench.encoders.loading import load_open_clip

    with torch.random.fork_rng(devices=[]):  # weights are drawn before they are read
        model, tokenise = load_open_clip(encoder)
    with torch.inference_mode():
        return np.asarray(model.encode_text(tokenise(prompts)).numpy())


def _save(file: Path, features: np.ndarray) -> None:
    draft = file.with_name(f".{file.name}.{os.getpid()}.draft")
    with draft.open("wb") as stream:
        np.save(stream, features, allow_pickle=False)
    draft.replace(file)
