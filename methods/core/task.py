"""What a method sees of a cell: the model as a pure function, and how to train it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from methods.core.batches import Batch
from methods.core.eval_mode import has_modes
from methods.core.numbers import Number
from methods.core.optimisers import Optimiser
from methods.core.random import derive, generator, normal
from methods.core.training import ONE_CLIENT, Loss, Mode, PlainSteps, train
from methods.core.tree import Tree

BATCH_NORM = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
OF_ONE_SEED = ("seed", "initial")
"""What of a task depends on the seed."""

if TYPE_CHECKING:
    from methods.modules.split_model import SplitModel


@dataclass(frozen=True)
class Task:
    """Model, optimiser and sizes of one cell. Parameters are always an argument, never kept here."""

    model: SplitModel
    initial: Tree
    """The weights every method starts from at this seed: what trains, and the buffers that follow."""
    classes: int
    clients: int
    optimiser: Optimiser
    """The clients' optimiser; in `local` with the learning rates of the round."""
    seed: int
    domains: tuple[int, ...] = ()
    """Client → number of its domain; empty where clients have samples of several domains."""
    input_shape: tuple[int, ...] | None = None
    """The shape of one sample; None: unknown."""
    records_losses: bool = False
    """Whether the record has losses, so that `observe` may give the server's."""
    rounds: int | None = None
    """How many rounds the run has, for what changes over them; None: unknown."""
    per_round: int | None = None
    """How many clients the server plans to hear from in a round; None: all of them."""
    mode: Mode = field(default=ONE_CLIENT, repr=False)

    def floats(self, x: Tensor) -> Tensor:
        """Samples as floats: bytes of images as the model's first layer standardises them."""
        return x if x.is_floating_point() else self.model.pixels(x)

    def logits(self, params: Tree, x: Tensor) -> Tensor:
        return self._call(self.model, params, x)

    def encode(self, params: Tree, x: Tensor) -> Tensor:
        """z, the encoder's output."""
        return self._call(self.model.encoder, params.below("encoder"), x)

    def project(self, params: Tree, z: Tensor) -> Tensor:
        return self._call(self.model.projector, params.below("projector"), z)

    def embed(self, params: Tree, x: Tensor) -> Tensor:
        """What the classifier works on: the projector's output, or the encoder's in a model without one."""
        return self.project(params, self.encode(params, x))

    def classify(self, params: Tree, embedding: Tensor) -> Tensor:
        return self._call(self.model.classifier, params.below("classifier"), embedding)

    def logits_from(self, params: Tree, z: Tensor) -> Tensor:
        """The logits for encoder outputs already at hand."""
        return self.classify(params, self.project(params, z))

    def train(
        self,
        start: Tree,
        loss: Loss,
        batches: Iterable[Batch],
        optimiser: Optimiser | None = None,
        *,
        also: Iterable[str] = (),
        plain_rate: Number | None = None,
    ) -> Tree:
        """The client's steps of this round on `loss(parameters, batch)`, beginning at `start`.

        They move the leaves that the model trains and those named in `also`; other leaves stay, apart from
        buffers that a layer updates. `optimiser` replaces the client's. With a `plain_rate`, the leaves of
        `also` take plain gradient steps of that rate instead of the optimiser's.
        """
        added = set(also)
        plain = None if plain_rate is None else PlainSteps(added, plain_rate)
        names = {*self.trainable, *added}
        return train(start, loss, batches, optimiser or self.optimiser, names, self.mode, plain)

    def gradient(self, params: Tree, loss: Loss, batch: Batch) -> Tree:
        """The gradient of the loss at these parameters, by the leaves that the model trains.

        The record of the round has nothing of it.
        """
        trained = self.trained(params)
        fixed = params.without(trained).as_dict()
        leaves = self.mode.gradient(loss, list(trained), list(trained.values()), fixed, batch.unrecorded())
        return Tree(zip(trained, leaves, strict=True))

    def trained(self, tree: Tree) -> Tree:
        """The leaves of a tree that the model trains: without buffers, and without what a method adds."""
        return Tree({name: leaf for name, leaf in tree.items() if name in self.trainable})

    @contextmanager
    def evaluation(self) -> Iterator[None]:
        """No gradients, and every part of the model in its evaluation mode; then in the mode it was in.

        Batch norm uses its running statistics without updating them, and dropout and the like do nothing.
        """
        modes = {part: part.training for part in self.model.modules()} if self._has_modes else {}
        if modes:
            self.model.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            if modes:
                self.model.train()
            for part, mode in modes.items():
                part.training = mode

    def generator(self, stream: str, *keys: int) -> torch.Generator:
        """A generator that depends on nothing but the seed, the purpose and the keys."""
        return generator(self.seed, stream, *keys)

    def normal(self, stream: str, *shape: int) -> Tensor:
        """Standard normal numbers that depend on nothing but the seed and the purpose."""
        return normal(derive(self.seed, stream), 0, shape, self.device)

    @cached_property
    def device(self) -> torch.device:
        first: Tensor = next(iter(self.initial.values()))
        return first.device

    @cached_property
    def trainable(self) -> frozenset[str]:
        return frozenset(name for name, leaf in self.model.named_parameters() if leaf.requires_grad)

    @cached_property
    def has_trainable_features(self) -> bool:
        return any(name.startswith("encoder.") for name in self.trainable)

    @cached_property
    def has_trainable_embeddings(self) -> bool:
        """Whether anything before the classifier is trained."""
        return any(name.startswith(("encoder.", "projector.")) for name in self.trainable)

    def require_trainable_embeddings(self) -> None:
        """For methods that act on what comes before the classifier."""
        if not self.has_trainable_embeddings:
            raise ValueError(
                "has no effect where nothing before the classifier is trained: choose a model with trainable "
                "features or a trainable projection"
            )

    def require_trainable_classifier(self) -> None:
        """For methods that train the classifier by itself."""
        if not self.trained(self.initial.part("classifier")):
            raise ValueError(
                "trains the classifier, which is fixed here: choose a model with a trainable classifier"
            )

    @cached_property
    def has_batch_norm(self) -> bool:
        return any(isinstance(module, BATCH_NORM) for module in self.model.modules())

    @cached_property
    def batch_norm_leaves(self) -> frozenset[str]:
        """The leaves of all batch-norm layers: scale, shift, running statistics and step counters."""
        layers = [name for name, layer in self.model.named_modules() if isinstance(layer, BATCH_NORM)]
        return frozenset(leaf for leaf in self.initial if leaf.rpartition(".")[0] in layers)

    @cached_property
    def _has_modes(self) -> bool:
        return has_modes(self.model)

    @cached_property
    def _has_tied_weights(self) -> bool:
        return len(list(self.model.named_parameters(remove_duplicate=False))) != len(
            list(self.model.named_parameters())
        )

    def _call(self, module: nn.Module, params: Tree, x: Tensor) -> Tensor:
        output: Tensor = functional_call(module, params.as_dict(), (x,), tie_weights=self._has_tied_weights)
        return output

    def computed(self, mode: Mode) -> Task:
        """The same task with gradients computed another way."""
        return replace(self, mode=mode._replace(precision=self.mode.precision))

    def with_optimiser(self, optimiser: Optimiser) -> Task:
        """The same task for clients with another optimiser."""
        other = copy(self)
        other.__dict__["optimiser"] = optimiser
        return other

    def for_several_seeds(self) -> Task:
        """What is the same for cells that differ in their seed: the task without `seed` and `initial`."""
        _ = self.device, self.batch_norm_leaves  # which are kept, and known from the initial model alone
        other = copy(self)
        for name in OF_ONE_SEED:
            del other.__dict__[name]
        return other

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Called for what is not there."""
            if name in OF_ONE_SEED:
                raise AttributeError(
                    f"task.{name} differs between cells of a stack: set reads_seed = True in the method's "
                    "class, or read it in server() or client() and keep it in the state"
                )
            raise AttributeError(f"a task has no '{name}'")


def initial_tree(model: nn.Module) -> Tree:
    """The trainable parameters and the persistent buffers of a model, detached copies."""
    trained = {name: leaf for name, leaf in model.named_parameters() if leaf.requires_grad}
    persistent = model.state_dict().keys()
    buffers = {name: leaf for name, leaf in model.named_buffers() if name in persistent}
    return Tree({name: leaf.detach().clone() for name, leaf in {**trained, **buffers}.items()})
