"""The interface of all methods: `FedAlgorithm`. Its docstring is the guide to writing one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict
from torch import Tensor

from methods.core.batches import Batch, Batches, Samples
from methods.core.exchange import Exchange, Message, Reply, State
from methods.core.hyperparameters import Role, option
from methods.core.losses import cross_entropy, label_losses
from methods.core.numbers import Number, is_off
from methods.core.optimisers import SGD, Adam, Group, Optimiser
from methods.core.optional import Prelude
from methods.core.samples_by_index import SamplesByIndex
from methods.core.task import Task
from methods.core.training import Loss, minimise, train_at_server
from methods.core.tree import Tree, weighted_sum, where

__all__ = [
    "SGD",
    "Adam",
    "Batch",
    "Batches",
    "Exchange",
    "FedAlgorithm",
    "Group",
    "Loss",
    "Message",
    "Number",
    "Optimiser",
    "Prelude",
    "Reply",
    "Role",
    "Samples",
    "SamplesByIndex",
    "State",
    "Task",
    "Tree",
    "cross_entropy",
    "is_off",
    "label_losses",
    "minimise",
    "option",
    "train_at_server",
    "weighted_sum",
    "where",
]
"""All that a method imports from the framework; `tests/test_imports.py` holds methods to it."""


class FedAlgorithm(BaseModel, ABC):
    """A federated-learning method: a frozen object that *is* its hyperparameters.

    A method overrides what its paper changes; most override only `objective`. A complete one:

        import torch
        from pydantic import Field
        from methods.base import Batch, Batches, Loss, Message, State, Task, Tree, cross_entropy
        from methods.fedavg import FedAvg

        class Jitter(FedAvg):
            label = "Jitter"
            neutral = {"sigma": 0.0}

            sigma: float = Field(default=0.1, ge=0)
            \"\"\"σ, the size of the noise on the features in a client's first round.\"\"\"

            def client(self, task: Task) -> State:
                return {"rounds": torch.zeros((), device=task.device)}

            def objective(self, task: Task, client: State, message: Message) -> Loss:
                sigma = self.sigma / (1 + client["rounds"])

                def loss(params: Tree, batch: Batch) -> torch.Tensor:
                    features = task.encode(params, batch.x)
                    noise = batch.normal(*features.shape)
                    return cross_entropy(task.logits_from(params, features + sigma * noise), batch)

                return loss

            def local(
                self, task: Task, client: State, message: Message, batches: Batches
            ) -> tuple[Message, State]:
                reply, _ = super().local(task, client, message, batches)
                return reply, {"rounds": client["rounds"] + 1}

    Saved as `methods/jitter.py` it can be run, tuned and compared by the name `jitter`.

    **What travels, what stays.** Only the result of `down` travels to a client, and only the first result of
    `local`, the reply, travels back; the bytes of both are counted. `client` makes a client's private state.
    The second result of `local` holds the entries that changed, and the engine keeps them for this client's
    next round. Functions of the server never see a private state.

    **Purity.** Functions change none of their arguments and keep nothing on `self`: whatever lasts is in a
    state. States and messages consist of tensors, trees (`Tree`: named tensors with + − × ÷) and dictionaries
    of these, so that they can be saved, sent and stacked. A client starts from what it is sent in a round.

    **Verbs.** `task.train(start, loss, batches)` takes the client's steps of the round; `also=` names leaves
    that the method has added to the model and trains, too. `task.gradient(params, loss, batch)` is a single
    gradient. `task.trained(tree)` are the leaves that the model trains, without buffers, and
    `tree.part("classifier")` those of one part of the model. `batches` are the steps of the round;
    `batches.once()` and `batches.all()` give every sample of the client exactly once.

    **Padding.** Clients of different sizes may be padded to one shape. Never average over a batch with
    `.mean()`: use `cross_entropy(logits, batch)` or `batch.mean(per_sample)`, and multiply by `batch.real`, 1
    for a real sample and 0 for padding, before a sum over samples. `batch.count` is the number of real ones.

    **Stacking.** `local` may run for many clients at once, inside `torch.func.vmap`. So in `local` and in
    losses there is no branch on the value of a tensor (use `torch.where`, or `where` for trees), no
    `.item()`, `float()` or `int()` of a tensor, and no shape that depends on a client's data: states have the
    same shapes for all clients. Branches on hyperparameters and on which keys a message has are fine.
    `batches.steps` and `batches.samples` may be tensors. To leave out a term whose weight is 0, write
    `if is_off(self.mu)`.

    **Stacks of cells.** Cells that differ only in hyperparameters and seed are computed together, too. Float
    hyperparameters are tensors then, in `aggregate` and `predict` as well. What cannot be computed so is
    declared: a float that decides an `if`, a count or a shape by `Annotated[float, Role.BRANCH]`, the rest by
    `stacks_server`, `stacks_predictions` and `reads_seed` below. Hyperparameters that only shape samples
    have `Role.SAMPLES`, as those of GGEUR. The contract finds what is missing and names it; CONTRIBUTING.md,
    "If you care about speed", has the rest.

    **Randomness.** Never use a global generator. Inside a loss, `batch.uniform(*shape)` and
    `batch.normal(*shape)` depend on the client, the round and the step, and are the same with every executor;
    pass another `stream` for further numbers in the same step. Elsewhere, `task.generator(purpose, *keys)`
    gives a generator that depends on nothing but the seed, the purpose and the keys.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    label: ClassVar[str]
    """The name in tables."""
    neutral: ClassVar[Mapping[str, Any] | str]
    """The hyperparameters at which the method is FedAvg bit for bit, or one clause why there are none."""
    version: ClassVar[int] = 1
    """Raised whenever the method's results change: part of a cell's identity."""
    has_global_model: ClassVar[bool] = True
    """Without one, a table shows the mean over the clients' own models."""
    pools_data: ClassVar[bool] = False
    """Whether one client holds the data of all."""
    own_model: ClassVar[Mapping[str, Any] | None] = None
    """The model, for methods that bring their own; None: the suite's."""
    one_round: ClassVar[bool] = False
    """Whether everything is sent before round 1, so that the rounds change nothing."""
    alternates: ClassVar[bool] = False
    """Whether clients send other leaves of the model in one round than in the next."""
    reveals: ClassVar[Mapping[str, str]] = {}
    """Entries of the private state whose numbers are part of replies by design → why."""
    observes_clients: ClassVar[bool] = False
    """Whether `observe` has figures about clients."""
    stacks_server: ClassVar[bool] = True
    """Whether `aggregate` can run for several cells inside one `vmap`; False if it branches on values of
    tensors, calls `float()` or trains, and it is called cell by cell."""
    stacks_predictions: ClassVar[bool] = True
    """The same of `predict`."""
    reads_seed: ClassVar[bool] = False
    """Whether `local` or `predict` reads `task.seed`, `task.generator` or `task.initial`, so that cells of
    different seeds are computed apart."""
    sample_state: ClassVar[frozenset[str]] = frozenset()
    """Entries of a client's private state that only `training_samples` reads, which reads no others: in a
    stack, `local` does not get them."""

    optimiser: Optimiser | None = None
    """The clients' optimiser; None: the suite's."""

    @property
    def client_optimiser(self) -> Optimiser | None:
        """The optimiser that clients use instead of the suite's, if any."""
        return self.optimiser

    def check(self, task: Task) -> None:
        """Raise ValueError with one sentence if the method cannot work on this task."""

    def server(self, task: Task) -> State:
        """What the server keeps, at the start."""
        return {"model": task.initial}

    def client(self, task: Task) -> State:
        """What a client keeps to itself, before its first round."""
        return {}

    def prelude(self, task: Task) -> Prelude:
        """Exchanges with all clients before round 1; every executor computes them client by client."""
        return []

    def down(self, task: Task, server: State, client_id: int) -> Message:
        """What the server sends to a client."""
        return {"model": server["model"]}

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        """The loss that a client minimises in a round, as a function of parameters and batch."""
        return lambda params, batch: cross_entropy(task.logits(params, batch.x), batch)

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        """A client's work: its reply, and the entries of its private state that changed."""
        return {"model": task.train(message["model"], self.objective(task, client, message), batches)}, {}

    @abstractmethod
    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        """The server's next state, from the replies in the order of the clients' ids."""

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        """The parameters of the server's model, or of a client's own if its state is given and has one."""
        model: Tree = client["model"] if client and "model" in client else server["model"]
        return model

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        """Class scores by the model that these states hold."""
        return task.logits(self.parameters(task, server, client), x)

    def other_predictions(self) -> Mapping[str, FedAlgorithm]:
        """Name → the same method with another way to predict from its states, whose accuracy is recorded."""
        return {}

    def anchored(self, task: Task, server: State, x: Tensor) -> tuple[Tensor, Tensor] | None:
        """Embeddings of the samples x and, in the same space, one anchor per class; None: there are none."""
        return None

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        """Figures for the record of a round: about the server, or about a client if its state is given.

        Clients are asked only if `observes_clients`; the record has the mean over the round's clients.
        """
        return {}
