"""The base class of models around a frozen CLIP model."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from pydantic import Field

from bench.encoders import EncoderSpec
from bench.errors import UserError
from bench.models.base import Context, ModelSpec
from methods.modules.split_model import SplitModel


class ClipSpec(ModelSpec):
    """A model for embeddings of an open_clip encoder, built with the text tower of that encoder."""

    name: ClassVar[str]

    scale: float = Field(default=100.0, gt=0)
    """Factor of the cosines: exp(logit_scale), which is 100 in OpenAI's weights."""

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        raise self.refusal()

    def build_with(self, context: Context, shape: tuple[int, ...]) -> SplitModel:
        if context.encoder is None or context.encoder.library != "open_clip":
            raise self.refusal()
        return self.build_on(context.encoder, context, shape[0])

    @abstractmethod
    def build_on(self, encoder: EncoderSpec, context: Context, width: int) -> SplitModel:
        """A new model for this encoder's embeddings, which have this width."""

    def refusal(self) -> UserError:
        return UserError(
            f"model '{self.name}' needs the embeddings and the text tower of a CLIP model; set encoder to "
            "open_clip:MODEL/TAG or open_clip:MODEL@FILE, say open_clip:ViT-B-16/openai"
        )
