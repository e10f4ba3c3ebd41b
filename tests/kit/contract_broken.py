"""Methods that break the contract, each in one way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import ConfigDict, Field, PrivateAttr
from torch import Tensor

from methods.base import Batch, Batches, FedAlgorithm, Loss, Message, Reply, State, Task, Tree
from methods.core.optimisers import SGD
from methods.fedavg import FedAvg


class Toy(FedAvg):
    """FedAvg under another name."""

    label = "Toy"


class ChangesLoss(Toy):
    """Adds something to the clients' loss."""

    def extra(self, task: Task, params: Tree, batch: Batch, client: State) -> Tensor:
        raise NotImplementedError

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        plain = super().objective(task, client, message)
        return lambda params, batch: plain(params, batch) + self.extra(task, params, batch, client)


class ChangesLocal(Toy):
    """Changes the reply or the private state after training."""

    def after(self, task: Task, client: State, reply: Message, batches: Batches) -> tuple[Message, State]:
        raise NotImplementedError

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, _ = super().local(task, client, message, batches)
        return self.after(task, client, reply, batches)


# Declaration and hyperparameters


class NoLabel(FedAvg):
    """Goes by the name of FedAvg in tables."""


class NotFrozen(Toy):
    model_config = ConfigDict(frozen=False)


class TakesAnything(Toy):
    model_config = ConfigDict(extra="allow")


class TakesNaN(Toy):
    model_config = ConfigDict(allow_inf_nan=True)
    mu: float = 0.1


class BadDefault(Toy):
    mu: float = Field(default=-1.0, ge=0)


class NoDefault(Toy):
    mu: float


class Incomplete(FedAlgorithm):
    label = "Incomplete"


# Rounds


class RefusesAll(Toy):
    label = "Refuses all"

    def check(self, task: Task) -> None:
        raise ValueError("needs a telescope")


class Raises(ChangesLocal):
    def after(self, task: Task, client: State, reply: Message, batches: Batches) -> tuple[Message, State]:
        return {"model": reply["no_such_entry"]}, {}


class LearnsNothing(Toy):
    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        return server


class ReturnsReplyAlone(Toy):
    def local(self, task: Task, client: State, message: Message, batches: Batches) -> Any:
        return super().local(task, client, message, batches)[0]


class ObservesTensor(Toy):
    def observe(self, task: Task, server: State, client: State | None = None) -> Any:
        return {"size": server["model"].norm()}


class SendsNumber(ChangesLocal):
    def after(self, task: Task, client: State, reply: Message, batches: Batches) -> tuple[Message, State]:
        return {**reply, "weight": 0.5}, {}


class Grows(ChangesLocal):
    def client(self, task: Task) -> State:
        return {"history": torch.zeros(0)}

    def after(self, task: Task, client: State, reply: Message, batches: Batches) -> tuple[Message, State]:
        return reply, {"history": torch.cat([client["history"], torch.zeros(1)])}


class UnequalReplies(ChangesLocal):
    def after(self, task: Task, client: State, reply: Message, batches: Batches) -> tuple[Message, State]:
        return {**reply, "losses": torch.zeros(int(batches.steps))}, {}


class OwnStart(ChangesLocal):
    """Clients go on from where they stopped, whatever the server sends."""

    def client(self, task: Task) -> State:
        return {"model": task.initial}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, _ = FedAvg.local(self, task, client, {"model": client["model"]}, batches)
        return reply, {"model": reply["model"]}


class StartsHalfway(Toy):
    """Clients start in the middle between the server's model and the initial one."""

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        return super().local(task, client, {"model": (message["model"] + task.initial) / 2}, batches)


class TrainsAtOwnRate(Toy):
    """Starts from what the server sent, and its steps do not vanish with the task's optimiser."""

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        loss = self.objective(task, client, message)
        return {"model": task.train(message["model"], loss, batches, SGD(lr=0.05))}, {}


class NeedsEveryClass(ChangesLoss):
    """Divides by the number of samples of each class, and the last class may have none."""

    def extra(self, task: Task, params: Tree, batch: Batch, client: State) -> Tensor:
        present = (batch.y[:, None] == torch.arange(task.classes)).float().sum(dim=0)
        return (task.logits(params, batch.x).sum(dim=0) / present).mean()


class OneAfterTheOther(Toy):
    """Every client starts from what the client before it returned."""

    last: ClassVar[dict[str, Tree]] = {}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        start = (message["model"] + self.last.get("model", message["model"])) / 2
        reply, _ = super().local(task, client, {"model": start}, batches)
        self.last["model"] = reply["model"]
        return reply, {}


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
        size = params["classifier.bias"].norm()
        return size if size.item() > 1 else 0 * size


class OtherWhenStacked(ChangesLoss):
    def extra(self, task: Task, params: Tree, batch: Batch, client: State) -> Tensor:
        return (0.1 if batch.stacked else 0.2) * params.only(task.trainable).sqnorm()


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


# Divergence and neutral setting


class HidesNaN(ChangesLocal):
    def after(self, task: Task, client: State, reply: Message, batches: Batches) -> tuple[Message, State]:
        return {"model": reply["model"].map(lambda leaf: leaf.nan_to_num(0.0, 0.0, 0.0))}, {}


class NotFedAvg(ChangesLoss):
    neutral: ClassVar[dict[str, float]] = {"mu": 0.0}
    mu: float = 0.1

    def extra(self, task: Task, params: Tree, batch: Batch, client: State) -> Tensor:
        return (self.mu + 0.01) * params.only(task.trainable).sqnorm()


class InheritsNeutral(ChangesLoss):
    def extra(self, task: Task, params: Tree, batch: Batch, client: State) -> Tensor:
        return 0.1 * params.only(task.trainable).sqnorm()


class UnknownNeutral(Toy):
    neutral: ClassVar[dict[str, float]] = {"nu": 0.0}


class NoNeutral(FedAlgorithm):
    label = "No neutral"

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        return {**server, "model": replies[0].content["model"]}
