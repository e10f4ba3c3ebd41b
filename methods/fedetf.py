"""FedETF: the classifier is a fixed simplex for all clients, and only features are learnt.

Li et al., "No Fear of Classifier Biases: Neural Collapse Inspired Federated Learning with Synthetic and
Fixed Classifier", ICCV 2023. With h what the model's classifier would work on, d its width and C classes: V
= √(C/(C−1)) · U(I − 11ᵀ/C), U (d × C) with orthonormal columns from the QR decomposition of a matrix of
standard normal numbers, a function of the common seed; so v_iᵀv_j = −1/(C−1). Logits: s · nor(h)ᵀV with a
learnt scale s. Client: cross-entropy of logits + log n_c (balanced softmax), n_c its samples of class c; a
class that it does not have drops out of the softmax. The weights before the classifier and s are trained,
sent and averaged; the model's own classifier is not used. Prediction: the largest logit.

The projection layer of the paper is the model's projector, if it has one. The paper's fine-tuning of
prototypes on each client afterwards, for personal models, is not part of this method.
"""

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batches, Loss, Message, State, Task, Tree, cross_entropy
from methods.fedavg import FedAvg
from methods.shared.label_counts import label_counts, log_counts
from methods.shared.losses import on_sphere

SCALE = "etf.scale"


class FedETF(FedAvg):
    label = "FedETF"
    neutral = "replaces the classifier at every setting"
    reads_seed = True

    initial_scale: float = Field(default=10.0, gt=0)
    """s at the start; the public code begins with 10 for a small CNN and 1 for ResNets."""
    balanced: bool = True
    """Balanced softmax, as in the paper; else a plain one."""

    def check(self, task: Task) -> None:
        task.require_trainable_embeddings()
        if task.model.embedding_size < task.classes:
            raise ValueError(
                f"needs features at least as wide as there are classes, but {task.model.embedding_size} < "
                f"{task.classes}: choose a wider model"
            )

    def server(self, task: Task) -> State:
        body = task.initial.without(task.initial.part("classifier"))
        scale = torch.tensor(self.initial_scale, device=task.device)
        return {"model": body | Tree({SCALE: scale})}

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        prior = log_counts(message["label_counts"]) if self.balanced else 0.0
        vectors = simplex(task)
        return lambda params, batch: cross_entropy(logits(task, params, batch.x, vectors) + prior, batch)

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        counts = label_counts(batches, task.classes)
        loss = self.objective(task, client, message | {"label_counts": counts})
        return {"model": task.train(message["model"], loss, batches, also=[SCALE])}, {}

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        return logits(task, server["model"], x, simplex(task))

    def anchored(self, task: Task, server: State, x: Tensor) -> tuple[Tensor, Tensor] | None:
        return on_sphere(task.embed(server["model"], x)), simplex(task).T


def logits(task: Task, params: Tree, x: Tensor, vectors: Tensor) -> Tensor:
    """s · nor(h)ᵀV."""
    return params[SCALE] * (on_sphere(task.embed(params, x)) @ vectors)


def simplex(task: Task) -> Tensor:
    """V: one unit vector per class, in columns."""
    classes = task.classes
    numbers = task.normal("simplex", task.model.embedding_size, classes)
    axes = torch.linalg.qr(numbers.double()).Q
    centred = torch.eye(classes, dtype=axes.dtype, device=axes.device) - 1 / classes
    vectors: Tensor = (classes / (classes - 1)) ** 0.5 * axes @ centred
    return vectors.float()
