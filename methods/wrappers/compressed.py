"""Compressed: any method whose clients send a model, with the update in fewer bytes on the way up.

With x the model that was sent, y_k what client k would return, and Δ = y_k − x as one vector of d floats
(buffers of floats included):

`topk`: u = Δ + e_k; the client sends the k = ⌈`share` · d⌉ entries of u of largest size, with positions,
and keeps what it did not send for the next round, e_k ← u without these entries; e_k = 0 at the start (Stich
et al., "Sparsified SGD with Memory", NeurIPS 2018). It travels: k float32 values and k int32 positions.

`qsgd`: Δ is cut into buckets b of `bucket` numbers; each v in b becomes ‖b‖ · sign(v) · ℓ/s with the whole
number ℓ = ⌊s·|v|/‖b‖ + u⌋, u uniform in [0, 1), so that its expectation is v (Alistarh et al., "QSGD:
Communication-Efficient SGD via Gradient Quantization and Encoding", NeurIPS 2017). It travels: a float32 per
bucket and ⌈log₂(2s + 1)⌉ bits per number, packed into bytes. The paper's Elias code is left out.

The server adds what it decodes to x and goes on as the inner method does, which may be any whose reply has a
`model`; all else in the reply travels whole, integer buffers too, and so does the model on the way down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batches, Message, Reply, Role, State, Task, Tree
from methods.shared.compression import from_largest, from_quantised, largest, quantised
from methods.shared.vectors import flattened, unflattened
from methods.wrappers._averages import sent_model
from methods.wrappers.base import Wrapper

STREAM = 1000
"""Of the random numbers of the rounding, apart from those of the inner method's losses."""


class Compressed(Wrapper):
    short_label = "Compressed"
    neutral = "rounds what is sent at every setting"
    reveals = {"residual": "error feedback sends later what was left out before"}

    kind: Literal["topk", "qsgd"] = "topk"
    """Send the largest entries of the update, or all of them with a few levels each."""
    share: Annotated[float, Role.BRANCH] = Field(default=0.1, gt=0, le=1)
    """Of `topk`: the share of the entries that are sent; the paper goes down to single ones."""
    levels: int = Field(default=7, ge=1, le=127)
    """s of `qsgd`; 7 needs four bits per number, as in the paper's 4-bit runs."""
    bucket: int = Field(default=512, ge=1)
    """Numbers of `qsgd` that share a length; 512 as in the paper's 4-bit runs."""

    def check(self, task: Task) -> None:
        super().check(task)
        if "model" not in self._first_message(task):
            raise ValueError(
                f"compresses updates of models, but {self.inner.label} sends none: choose another method, "
                "say compressed+fedavg"
            )
        if self.kind == "topk" and self.trained.alternates:
            raise ValueError(
                f"keeps what it did not send for the next round, in which {self.trained.label} sends other "
                "parameters: set kind to qsgd"
            )

    def client(self, task: Task) -> State:
        state = super().client(task)
        if self.kind == "topk":
            state["residual"] = torch.zeros_like(flattened(self._first_message(task)["model"]))
        return state

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, kept = super().local(task, client, message, batches)
        model: Tree = reply.pop("model")
        update = flattened(model - message["model"])
        if self.kind == "topk":
            update = update + client["residual"]
            sent = largest(update, math.ceil(self.share * len(update)))
            kept["residual"] = update.scatter(0, sent["indices"].long(), torch.zeros_like(sent["values"]))
        else:
            uniform = next(iter(batches)).uniform(len(update), stream=STREAM)
            sent = quantised(update, self.levels, self.bucket, uniform)
        integers = Tree({name: leaf for name, leaf in model.items() if not leaf.is_floating_point()})
        return reply | {"update": sent} | ({"integers": integers} if integers else {}), kept

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        whole = [self._decoded(task, server, reply) for reply in replies]
        return super().aggregate(task, server, whole)

    def _decoded(self, task: Task, server: State, reply: Reply) -> Reply:
        """The reply as the inner server expects it."""
        x = sent_model(self.trained, task, server["inner"], reply)
        start = flattened(x)
        content = dict(reply.content)
        update = self._vector(content.pop("update"), len(start))
        model = unflattened(start + update, x | content.pop("integers", Tree({})))
        return reply._replace(content=content | {"model": model})

    def _vector(self, sent: dict[str, Tensor], size: int) -> Tensor:
        if self.kind == "topk":
            return from_largest(sent, size)
        return from_quantised(sent, size, self.levels, self.bucket)

    def _first_message(self, task: Task) -> Message:
        """What a client is sent in round 1, unless a prelude changes it."""
        return self.trained.down(task, self.trained.server(task), 0)
