"""Methods with a wrong declaration, wrong rounds or a wrong neutral setting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from pydantic import ConfigDict, Field
from torch import Tensor

from methods.base import Batch, Batches, FedAlgorithm, Message, Prelude, Reply, State, Task, Tree
from methods.core.optimisers import SGD
from methods.fedavg import FedAvg
from methods.shared.one_round import OneRound
from methods.shared.preludes import Upload
from tests.kit.contract_toys import ChangesLocal, ChangesLoss, Toy

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


# Divergence and neutral setting


class HidesNaN(ChangesLocal):
    def after(self, task: Task, client: State, reply: Message, batches: Batches) -> tuple[Message, State]:
        return {"model": reply["model"].map(lambda leaf: leaf.nan_to_num(0.0, 0.0, 0.0))}, {}


class LargestInput(Upload):
    """Clients send their largest input, with infinity made a number."""

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        largest = torch.stack([batch.x.max() for batch in batches.once()]).max()
        return {"largest": largest.nan_to_num(posinf=0.0)}, {}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        scale = torch.stack([reply.content["largest"] for reply in replies]).max()
        return {"model": server["model"] * scale}


class HidesNaNBeforeRound1(OneRound):
    label = "Hides NaN before round 1"

    def prelude(self, task: Task) -> Prelude:
        return [LargestInput()]


class SendsInRounds(Toy):
    one_round: ClassVar[bool] = True


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
