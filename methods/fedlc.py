"""FedLC: a client's logits are lowered the more, the fewer samples of the class it has.

Zhang et al., "Federated Learning with Label Distribution Skew via Logits Calibration", ICML 2022, Eq. 8: with
n_c the client's samples of class c, f_c the logits and g_c = f_c − τ·n_c^(−1/4), the loss is the mean of
−log( e^{g_y} / Σ_c e^{g_c} ). A class of which the client has no sample drops out of the sum. The server
averages as FedAvg does; prediction uses f. τ = 0 only drops absent classes.

The paper prints the sum over c ≠ y, which lets a right prediction's loss fall without bound; that reading is
`sum_over: others`. With it, a sample of a client that has one class alone has no loss.
"""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Loss, Message, State, Task, Tree, cross_entropy
from methods.fedavg import FedAvg
from methods.shared.label_counts import ABSENT, label_counts


class FedLC(FedAvg):
    label = "FedLC"
    neutral = "drops the classes that a client does not have at every setting"

    tau: float = Field(default=1.0, ge=0)
    """τ, the strength of the calibration; the paper tunes it over {0.1, 0.5, 1}."""
    sum_over: Literal["all", "others"] = "all"
    """The classes in the denominator: all, as in a softmax, or all but the true one, as printed."""

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        counts = label_counts(batches, task.classes)
        return super().local(task, client, message | {"label_counts": counts}, batches)

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        counts = message["label_counts"]
        margins = torch.where(counts > 0, -self.tau * counts.clamp(min=1) ** -0.25, ABSENT)

        def loss(params: Tree, batch: Batch) -> Tensor:
            calibrated = task.logits(params, batch.x) + margins
            if self.sum_over == "all":
                return cross_entropy(calibrated, batch)
            return batch.mean(loss_over_others(calibrated, batch.y))

        return loss


def loss_over_others(logits: Tensor, y: Tensor) -> Tensor:
    """log Σ_{c≠y} e^{g_c} − g_y, sample by sample; 0 where no other class is present."""
    true = y[:, None] == torch.arange(logits.shape[1], device=y.device)
    others = logits.masked_fill(true, ABSENT).logsumexp(dim=1)
    return torch.where(others > ABSENT / 2, others - logits.gather(1, y[:, None])[:, 0], 0.0)
