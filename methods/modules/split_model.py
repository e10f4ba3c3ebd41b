"""A network in the parts that methods call: encoder, projector, classifier."""

from torch import Tensor, nn

from methods.modules.pixels import Pixels


class SplitModel(nn.Module):
    """x → encoder → z → projector → classifier → logits, in parts that a method can call.

    A model without a projector has the identity there; `feature_size` and `embedding_size` are the widths
    of the encoder's and the projector's output. `reads_tokens` says that x are the numbers of words, with
    which nothing can be computed but by this model.
    """

    alike_in_training = True

    def __init__(
        self,
        encoder: nn.Module,
        projector: nn.Module,
        classifier: nn.Module,
        *,
        feature_size: int,
        embedding_size: int,
        reads_tokens: bool = False,
    ) -> None:
        super().__init__()
        self.encoder, self.projector, self.classifier = encoder, projector, classifier
        self.feature_size, self.embedding_size = feature_size, embedding_size
        self.reads_tokens = reads_tokens

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.projector(self.encoder(x)))
        return logits

    def pixels(self, x: Tensor) -> Tensor:
        """Bytes of images as the model's first layer turns them into floats."""
        return x if self._pixels is None else self._pixels(x)

    def standardised(self, x: Tensor) -> Tensor:
        """The same for floats from 0 to 255, as bytes become when a picture's colours are changed."""
        return x.float() if self._pixels is None else self._pixels.standardised(x)

    @property
    def _pixels(self) -> Pixels | None:
        return next((module for module in self.modules() if isinstance(module, Pixels)), None)
