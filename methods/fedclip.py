"""FedCLIP: on a frozen CLIP model, clients train and share a small adapter of the image features.

Lu et al., "FedCLIP: Fast Generalization and Personalization for CLIP in Federated Learning", IEEE Data
Engineering Bulletin 2023. The adapter Linear–Tanh–Linear–Softmax makes a weight for every feature; logits are
scaled cosines between the weighted features and the text features of the classes' prompts. Only the adapter
is trained, sent and averaged, as in FedAvg.

Deviations: the public code has β₂ = 0.98 and ε = 1e-6 in Adam, a contrastive loss within the batch (`loss`)
and a uniform average (`weighting`); here Adam has its usual values, the loss is the cross-entropy over
classes, and averages are FedAvg's. The contrastive loss of a batch pairs every image with the text of its
class, and is the mean of the two cross-entropies that tell the right text among the batch's texts and the
right image among its images; images of one class are each other's wrong answers, as in the public code.
"""

from typing import Literal

import torch
from torch import Tensor

from methods.base import Adam, Batch, Loss, Message, Optimiser, State, Task, Tree, option
from methods.fedavg import FedAvg
from methods.modules.clip import CosineClassifier, FeatureAdapter
from methods.shared.label_counts import ABSENT
from methods.shared.losses import on_sphere


class FedCLIP(FedAvg):
    label = "FedCLIP"
    own_model = {"name": "clip_adapter"}

    optimiser: Optimiser | None = Adam(lr=5e-5, weight_decay=0.2)
    """The clients' optimiser: Adam with rate 5e-5 and weight decay 0.2 as in the paper."""
    loss: Literal["classes", "contrastive"] = option("classes")
    """The cross-entropy over all classes, or the public code's contrast within a batch."""

    def check(self, task: Task) -> None:
        if not isinstance(task.model.projector, FeatureAdapter):
            raise ValueError("trains CLIP's adapter alone: give it no model, or clip_adapter")

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        if self.loss == "classes":
            return super().objective(task, client, message)
        classifier = task.model.classifier
        assert isinstance(classifier, CosineClassifier)

        def loss(params: Tree, batch: Batch) -> Tensor:
            images, texts = on_sphere(task.embed(params, batch.x)), classifier.text[batch.y]
            return batch.mean(contrast(classifier.scale * images @ texts.T, batch))

        return loss


def contrast(logits: Tensor, batch: Batch) -> Tensor:
    """Per sample the mean of both cross-entropies; `logits`: images × texts, with pairs on the diagonal."""
    real = batch.real > 0
    logits = torch.where(real[:, None] & real, logits, ABSENT)
    both = logits.log_softmax(dim=1) + logits.log_softmax(dim=0)
    return -both.diagonal() / 2
