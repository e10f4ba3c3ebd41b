"""Any PyTorch module as the encoder, projector and classifier that methods know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from bench.errors import UserError, nearest
from methods.modules.pixels import Pixels
from methods.modules.split_model import SplitModel


def split(
    module: nn.Module,
    shape: tuple[int, ...],
    classes: int,
    classifier: str | None = None,
    projector: str | None = None,
) -> SplitModel:
    """The module, divided at the submodules that the dotted names refer to.

    The encoder is the module with these submodules replaced by the identity, behind a layer that turns bytes
    of pictures into standardised floats. Without a name, the last linear layer is the classifier. A dry run
    finds the widths, and a UserError says why a module cannot be divided there: classifier(projector(
    encoder(x))) must be the module's own output.
    """
    if not list(module.children()):  # a single layer
        module = nn.Sequential(module)
    classifier = classifier or _last_linear(module)
    head = _submodule(module, classifier)
    middle: nn.Module = nn.Identity()
    whole = nn.Sequential(Pixels(), module)
    with torch.no_grad(), _evaluating(module):
        x = _probe(shape)
        expected = _output(whole, x, "model(x)")
        if expected.shape != (len(x), classes):
            raise UserError(
                f"model: its output has shape {tuple(expected.shape)} for {len(x)} samples; it must be "
                f"{(len(x), classes)}, one number per sample and class"
            )
        _replace(module, classifier)
        if projector is not None:
            middle = _submodule(module, projector)
            _replace(module, projector)
        removed = f"'{projector}' and '{classifier}'" if projector else f"'{classifier}'"
        z = _output(whole, x, f"the module without {removed}, which must be its last step,")
        embedding = _output(middle, z, f"'{projector}'")
        for name, part in ((projector or classifier, z), (classifier, embedding)):
            if part.dim() != 2:
                raise UserError(
                    f"model: '{name}' gets an input of shape {tuple(part.shape)}; flatten it to "
                    "(samples, features) before"
                )
        found = _output(head, embedding, f"'{classifier}'")
        if found.shape != expected.shape or not torch.allclose(found, expected, rtol=1e-4, atol=1e-5):
            raise UserError(
                f"model: {removed} cannot be its last step: the parts one after another give another output "
                "than the whole; name the layer that gives the logits by 'classifier', the one before by "
                "'projector'"
            )
    return SplitModel(whole, middle, head, feature_size=z.shape[1], embedding_size=embedding.shape[1])


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode, so that a dry run leaves batch statistics as they are."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode


def _probe(shape: tuple[int, ...]) -> Tensor:
    """Two samples like those of a dataset, drawn without touching the global generator."""
    draw = torch.Generator().manual_seed(0)
    if len(shape) == 3:
        return torch.randint(0, 256, (2, *shape), generator=draw, dtype=torch.uint8)
    return torch.randn(2, *shape, generator=draw)


def _output(module: nn.Module, x: Tensor, what: str) -> Tensor:
    try:
        out = module(x)
    # The user's own code may raise anything.
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"model: {what} fails for inputs of shape {tuple(x.shape)}: {reason}") from error
    if not isinstance(out, Tensor):
        raise UserError(f"model: {what} gives a {type(out).__name__}; it must give one tensor")
    return out


def _last_linear(module: nn.Module) -> str:
    names: list[str] = [name for name, part in module.named_modules() if isinstance(part, nn.Linear) and name]
    if not names:
        raise UserError("model: it has no linear layer to take as its classifier; name one by 'classifier'")
    return names[-1]


def _submodule(module: nn.Module, name: str) -> nn.Module:
    known = [known for known, _ in module.named_modules() if known]
    if name not in known:
        raise UserError(f"model: it has no submodule '{name}'; {nearest(name, known)}")
    return module.get_submodule(name)


def _replace(module: nn.Module, name: str) -> None:
    parent, _, last = name.rpartition(".")
    setattr(module.get_submodule(parent), last, nn.Identity())
