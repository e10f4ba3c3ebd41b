"""A transformer of the library `transformers` that reads texts, with adapters or trained as a whole.

`source: minilm` is the packaged all-MiniLM-L6-v2; otherwise the path of a folder that `save_pretrained` has
written, or a name on the hub. With `adapter` the transformer is frozen and only the adapters and the new head
train; without it everything does. Its outputs are averaged over the real tokens of a text. Dropout is off, so
that every executor computes the same.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field
from torch import Tensor, nn

from bench.data.language_models import MINILM, language_model_folder, vocabulary_digest
from bench.encoders.networks import Pooling, fresh_network, pooled_output, pretrained_network
from bench.errors import UserError
from bench.models.base import Context, ModelSpec
from bench.models.linear import Linear
from methods.modules.split_model import SplitModel


class TextBackbone(nn.Module):
    """Tokens (N, T) → one vector per text (N, D)."""

    def __init__(self, network: nn.Module, pooling: Pooling) -> None:
        super().__init__()
        self.network, self.pooling = network, pooling

    def forward(self, ids: Tensor) -> Tensor:
        return pooled_output(self.network, ids, self.network.config.pad_token_id, self.pooling)

    def train(self, mode: bool = True) -> Self:
        """The transformer stays in its evaluation mode, in which it drops nothing out."""
        super().train(mode)
        self.network.eval()
        return self


class Transformers(ModelSpec):
    source: str = Field(default=MINILM, min_length=1)
    """`minilm`, the path of a folder, or a name on the hub."""
    weights: Literal["pretrained", "random"] = "pretrained"
    """`random`: the architecture alone, with weights newly drawn."""
    pooling: Pooling = "mean"
    """The vector of a text: the mean over its tokens, or the output at its first one."""

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        folder = language_model_folder(self.source)
        network = (pretrained_network if self.weights == "pretrained" else fresh_network)(folder, "eager")
        longest = getattr(network.config, "max_position_embeddings", shape[0])
        if shape[0] > longest:
            raise UserError(
                f"model: '{self.source}' reads texts of at most {longest} tokens, not {shape[0]}; lower "
                "dataset.tokens"
            )
        width = network.config.hidden_size
        backbone = TextBackbone(network, self.pooling).train()
        return SplitModel(
            backbone, nn.Identity(), Linear(width, classes), feature_size=width, embedding_size=width
        )

    def build_with(self, context: Context, shape: tuple[int, ...]) -> SplitModel:
        if not context.vocabulary:
            raise UserError(
                "model 'transformers' reads texts: choose a dataset of texts and leave encoder out"
            )
        if context.vocabulary != vocabulary_digest(self.source):
            raise UserError(
                f"the dataset has the tokens of another language model than '{self.source}'; set "
                "dataset.tokenizer to the model's source"
            )
        return self.build(shape, len(context.class_names))
