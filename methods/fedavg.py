"""FedAvg: clients train the server's model, and the server averages what they return.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017,
Algorithm 1: x ← Σ_k w_k y_k with w_k = n_k / Σ n. Local epochs, batch size and optimiser come from the suite.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from methods.base import Reply, State, Task
from methods.shared.averaging import Averaging


class FedAvg(Averaging):
    """Also the base of the methods that change only the clients' objective or the server's step."""

    label = "FedAvg"
    neutral: ClassVar[Mapping[str, Any] | str] = {}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        return {**server, "model": self.average(replies)}
