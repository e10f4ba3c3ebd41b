"""Your own model from a Python file: `def model(input_shape, classes)` that returns any nn.Module.

In a suite: `model: {name: file, path: my_model.py, classifier: fc}`; in Python: `bench.models.from_module`.
`classifier` is the dotted name of the submodule that gives the logits (by default the last linear layer),
and `projector` that of one right before it, if there is one. All before them is the encoder. Bytes of
pictures are standardised before they reach the module, as for every other model; vectors come as they are.
The file's content is part of a cell's identity: an edited file makes new cells.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from pydantic import Field
from torch import nn

from bench.errors import UserError
from bench.models.base import ModelSpec
from bench.models.splitting import split
from bench.user_code.models import DIGEST_LENGTH, built, digest_of, keep_source, planned_source, source_at
from methods.modules.split_model import SplitModel


class ModelFile(ModelSpec):
    runs_code: ClassVar[bool] = True

    path: str = Field(min_length=1)
    """The Python file: absolute, or relative to the suite file's folder or the current directory."""
    function: str | None = Field(default=None, exclude_if=lambda function: function is None)
    """The function or class to call; None: `model`, or the only one that the file defines."""
    classifier: str | None = Field(default=None, exclude_if=lambda name: name is None)
    """Dotted name of the submodule that gives the logits; None: the last linear layer."""
    projector: str | None = Field(default=None, exclude_if=lambda name: name is None)
    """Dotted name of the submodule before the classifier whose output methods may align; None: none."""
    options: dict[str, Any] = Field(default={}, exclude_if=lambda options: not options)
    """Further keyword arguments of the function."""
    digest: str | None = Field(default=None, pattern=f"^[0-9a-f]{{{DIGEST_LENGTH}}}$")
    """Digest of the file's content, computed when a suite is planned; in a suite file, it pins the file."""

    def identified(self) -> Self:
        if self.digest is not None:
            return self
        text = source_at(self.path)
        keep_source(text)
        return self.model_copy(update={"digest": digest_of(text)})

    def sources(self) -> tuple[str, ...]:
        return (source_at(self.path) if self.digest is None else planned_source(self.path, self.digest),)

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        (text,) = self.sources()
        shape = tuple(int(side) for side in shape)
        module = built(text, self.path, self.function, (shape, classes), self.options)
        if isinstance(module, SplitModel):
            return module
        if not isinstance(module, nn.Module):
            raise UserError(
                f"model: {self.path} returned a {type(module).__name__}; it must return an nn.Module"
            )
        return split(module, shape, classes, self.classifier, self.projector)
