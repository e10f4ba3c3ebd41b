"""Methods that are impure, count padding, cannot be stacked or send what they must not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from pydantic import Field, PrivateAttr
from torch import Generator, Tensor

from methods.base import Batch, Batches, Message, Prelude, Reply, Samples, State, Task, Tree
from methods.core.hyperparameters import Role
from tests.kit.contract_toys import ChangesLocal, ChangesLoss, Toy

# Purity and randomness


class EditsMessage(Toy):
    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        message["model"]["classifier.bias"].add_(0.1)
        return super().local(task, client, message, batches)


class AveragesInPlace(Toy):
    """Averages into the memory of the first reply."""

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        for name, leaf in self.average(replies).items():
            replies[0].content["model"][name].copy_(leaf)
        return {"model": replies[0].content["model"]}


class EditsData(Toy):
    """Shrinks its samples where they are."""

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        for batch in batches.once():
            batch.x.mul_(0.9)
        return super().local(task, client, message, batches)


class CountsOnClass(ChangesLoss):
    """Its pull grows with every round that any object of the class has seen."""

    rounds: ClassVar[list[int]] = []

    def extra(self, task: Task, params: Tree, batch: Batch, client: State) -> Tensor:
        return 0.01 * len(self.rounds) * params.only(task.trainable).sqnorm()

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        self.rounds.append(1)
        return super().aggregate(task, server, replies)


class CountsOnObject(Toy):
    """The server's step shrinks with a count of rounds that is not in its state."""

    _rounds: int = PrivateAttr(default=0)

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        self._rounds += 1
        step = (self.average(replies) - server["model"]) / self._rounds
        return {**server, "model": server["model"] + step}


class GlobalNoise(ChangesLoss):
    def extra(self, task: Task, params: Tree, batch: Batch, client: State) -> Tensor:
        return (torch.rand(task.classes) * task.logits(params, batch.x)[0]).sum()


class NumpyNoise(Toy):
    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        noise = 0.01 * float(np.random.rand())
        return {**server, "model": self.average(replies) + noise}


class WastesRandomness(Toy):
    """Draws a number from the global generator and does not use it."""

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        torch.rand(1)
        return super().aggregate(task, server, replies)


# Padding and executors


class CountsPadding(ChangesLoss):
    """The centre of the features is that of all samples, padding included."""

    label = "Counts padding"
    neutral = "pulls features together at every setting"

    def extra(self, task: Task, params: Tree, batch: Batch, client: State) -> Tensor:
        z = task.encode(params, batch.x)
        return batch.mean((z - z.mean(dim=0)).square().sum(dim=1))


class CountsPaddingAfterTraining(ChangesLocal):
    """The mean input over `batches.once()`, without the mask."""

    def after(self, task: Task, client: State, reply: Message, batches: Batches) -> tuple[Message, State]:
        return {**reply, "mean": torch.stack([batch.x.sum() for batch in batches.once()]).sum()}, {}


class CannotBeStacked(ChangesLoss):
    def extra(self, task: Task, params: Tree, batch: Batch, client: State) -> Tensor:
        size: Tensor = params["classifier.bias"].norm()
        return size if size.item() > 1 else 0 * size


class OtherWhenStacked(ChangesLoss):
    def extra(self, task: Task, params: Tree, batch: Batch, client: State) -> Tensor:
        return (0.1 if batch.stacked else 0.2) * params.only(task.trainable).sqnorm()


class OtherInSweeps(ChangesLoss):
    """Takes a number that is a tensor for no number."""

    mu: float = Field(default=0.1, ge=0)

    def extra(self, task: Task, params: Tree, batch: Batch, client: State) -> Tensor:
        weight = self.mu if isinstance(self.mu, float) else 0.0
        return weight * params.only(task.trainable).sqnorm()


class PredictsOtherInSweeps(Toy):
    """The same, in its predictions."""

    bias: float = Field(default=1e6, ge=0)

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        towards_first = self.bias if isinstance(self.bias, float) else 0.0
        scores = super().predict(task, server, client, x)
        return scores + towards_first * (torch.arange(scores.shape[1]) == 0)


@dataclass(frozen=True)
class CentreUp:
    """Says that it is the same for all scales, and is not."""

    scale: float = dataclass_field(compare=False)

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return {}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        return {}, {"centre": torch.full((1,), self.scale)}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        return server


class OtherPreludeInSweeps(ChangesLoss):
    """Its cells share an exchange that depends on a number in which they differ."""

    scale: float = Field(default=0.5, gt=0)

    def client(self, task: Task) -> State:
        return {"centre": torch.zeros(1)}

    def prelude(self, task: Task) -> Prelude:
        return [CentreUp(self.scale)]

    def extra(self, task: Task, params: Tree, batch: Batch, client: State) -> Tensor:
        centre: Tensor = client["centre"]
        return centre.sum() * params.only(task.trainable).sqnorm()


class OtherRoundsInSweeps(ChangesLoss):
    """Says that a whole number makes no difference to its rounds, and it does."""

    copies: Annotated[int, Role.SAMPLES] = Field(default=1, ge=1)

    def extra(self, task: Task, params: Tree, batch: Batch, client: State) -> Tensor:
        return 0.1 * self.copies * params.only(task.trainable).sqnorm()


class OtherSamplesInSweeps(Toy):
    """Does not say that its samples depend on a number."""

    scale: float = Field(default=0.5, gt=0)

    def training_samples(self, task: Task, client: State, own: Samples, draw: Generator) -> Samples:
        return Samples(self.scale * own.x, own.y)

    def resamples(self) -> bool:
        return False


class HidesFromRounds(ChangesLoss):
    """Says that its rounds do not read the private state, and they do."""

    sample_state = frozenset({"weight"})

    def client(self, task: Task) -> State:
        return {"weight": torch.ones(())}

    def extra(self, task: Task, params: Tree, batch: Batch, client: State) -> Tensor:
        weight: Tensor = client["weight"]
        return weight * params.only(task.trainable).sqnorm()


class BranchesOnNumber(ChangesLoss):
    """Does not say that a number decides an `if`."""

    mu: float = Field(default=0.1, ge=0)

    def extra(self, task: Task, params: Tree, batch: Batch, client: State) -> Tensor:
        weight = 1.0 if self.mu > 0.09 else 0.5
        return weight * params.only(task.trainable).sqnorm()


class DeclaresBranch(BranchesOnNumber):
    mu: Annotated[float, Role.BRANCH] = Field(default=0.1, ge=0)


class ServerDecides(Toy):
    """Does not say that its server branches on the value of a tensor."""

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        model = self.average(replies)
        return {"model": model if float(model.sqnorm()) > 0 else server["model"]}


class DeclaresServer(ServerDecides):
    stacks_server = False


class PredictsByValue(Toy):
    """Does not say that its predictions branch on the value of a tensor."""

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        scores = super().predict(task, server, client, x)
        return scores if scores.sum().item() > 0 else 2 * scores


class DeclaresPredictions(PredictsByValue):
    stacks_predictions = False


class ReadsSeed(ChangesLoss):
    """Does not say that a client's work depends on the seed."""

    def extra(self, task: Task, params: Tree, batch: Batch, client: State) -> Tensor:
        return (1 + task.seed) * params.only(task.trainable).sqnorm()


class PullsToInitial(ChangesLoss):
    """The same of the initial model."""

    def extra(self, task: Task, params: Tree, batch: Batch, client: State) -> Tensor:
        return params.sqdist(task.initial)


class DeclaresSeed(ReadsSeed):
    reads_seed = True


# What travels


class Smuggles(Toy):
    """Clients leave a number for the server in a place of their own."""

    left: ClassVar[dict[str, Tensor]] = {}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, kept = super().local(task, client, message, batches)
        self.left["bias"] = reply["model"]["classifier.bias"]
        return reply, kept

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        model = self.average(replies) | Tree({"classifier.bias": self.left["bias"]})
        return {**server, "model": model}


class SendsSamples(ChangesLocal):
    def after(self, task: Task, client: State, reply: Message, batches: Batches) -> tuple[Message, State]:
        return {**reply, "example": next(iter(batches.once())).x[:2] * 1}, {}


class Personal(Toy):
    """Every client has a bias of its own; with `sent` it betrays it."""

    sent: str = "nothing"

    def client(self, task: Task) -> State:
        return {"bias": torch.zeros(task.classes)}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        start = message["model"] | Tree({"classifier.bias": client["bias"]})
        y = task.train(start, self.objective(task, client, message), batches)
        bias = y["classifier.bias"]
        betrayed: dict[str, dict[str, Any]] = {
            "nothing": {},
            "itself": {"extra": client["bias"]},
            "a copy": {"extra": client["bias"].clone()},
            "among others": {"extra": torch.cat([y["classifier.weight"].flatten(), client["bias"]])},
            "rearranged": {"extra": Tree({"leaf": client["bias"].flip(0).double()})},
            "one number": {"extra": client["bias"][1] * 1},
            "after training": {"extra": bias.clone()},
            "in the model": {"model": y},
        }
        shared = {"model": y | message["model"].only(["classifier.bias"])}
        return shared | betrayed[self.sent], {"bias": bias}


class TellsOthers(Personal):
    """Clients see a sum of private states that the class keeps."""

    told: ClassVar[list[Tensor]] = []

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        self.told.append(client["bias"])
        reply, kept = super().local(task, client, message, batches)
        return {**reply, "sum": torch.stack(self.told).sum(dim=0) * 3}, kept
