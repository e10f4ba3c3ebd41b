"""FedRS: a client's logits of classes that it does not have count only in part.

Li and Zhan, "FedRS: Federated Learning with Restricted Softmax for Label Distribution Non-IID Data", KDD
2021, Eq. 6: the softmax of α_c·f_c, with α_c = 1 for the classes that the client has samples of and α for the
others, so that their weights are pushed away less. The server averages as FedAvg does; prediction uses f.
α = 1 is FedAvg exactly; α = 0 gives absent classes the logit 0. The logit f_c includes the classifier's bias;
the paper's classifier has none.
"""

import torch
from pydantic import Field

from methods.base import Batches, Loss, Message, State, Task, cross_entropy, is_off
from methods.fedavg import FedAvg
from methods.shared.label_counts import label_counts


class FedRS(FedAvg):
    label = "FedRS"
    neutral = {"alpha": 1.0}

    alpha: float = Field(default=0.5, ge=0, le=1)
    """α, the factor of the logits of absent classes; 0.5 as in the paper."""

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        if is_off(1 - self.alpha):
            return super().local(task, client, message, batches)
        counts = label_counts(batches, task.classes)
        return super().local(task, client, message | {"label_counts": counts}, batches)

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        if is_off(1 - self.alpha):
            return super().objective(task, client, message)
        factors = torch.where(message["label_counts"] > 0, 1.0, self.alpha)
        return lambda params, batch: cross_entropy(factors * task.logits(params, batch.x), batch)
