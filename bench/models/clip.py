"""What the models around a frozen CLIP model have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from pydantic import Field

from bench.encoders import EncoderSpec
from bench.errors import UserError
from bench.models.base import Context, ModelSpec
from methods.modules.split_model import SplitModel


class ClipSpec(ModelSpec):
    """A model on embeddings of an open_clip encoder, made with the text tower of the same."""

    name: ClassVar[str]

    scale: float = Field(default=100.0, gt=0)
    """By which cosines are multiplied: exp(logit_scale), which is 100 in OpenAI's weights."""

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        raise self.refusal()

    def build_with(self, context: Context, shape: tuple[int, ...]) -> SplitModel:
        if context.encoder is None or context.encoder.library != "open_clip":
            raise self.refusal()
        return self.build_on(context.encoder, context, shape[0])

    @abstractmethod
    def build_on(self, encoder: EncoderSpec, context: Context, width: int) -> SplitModel:
        """A fresh model for embeddings of this width by this encoder."""

    def refusal(self) -> UserError:
        return UserError(
            f"model '{self.name}' needs the embeddings and the text tower of a CLIP model; set encoder to "
            "open_clip:MODEL/TAG or open_clip:MODEL@FILE, say open_clip:ViT-B-16/openai"
        )
