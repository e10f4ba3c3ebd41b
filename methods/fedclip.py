"""FedCLIP: on a frozen CLIP model, clients train and share a small adapter of the image features.

Lu et al., "FedCLIP: Fast Generalization and Personalization for CLIP in Federated Learning", IEEE Data
Engineering Bulletin 2023. The adapter Linear–Tanh–Linear–Softmax makes a weight for every feature; logits are
scaled cosines between the weighted features and the text features of the classes' prompts. Only the adapter
is trained, sent and averaged, as in FedAvg.

Deviations: the public code has β₂ = 0.98 and ε = 1e-6 in Adam, a contrastive loss within the batch and a
uniform average; here Adam has its usual values, the loss is the cross-entropy over classes, and averages are
FedAvg's.
"""

from methods.base import Task
from methods.core.optimisers import Adam, Optimiser
from methods.fedavg import FedAvg
from methods.modules.clip import FeatureAdapter


class FedCLIP(FedAvg):
    label = "FedCLIP"
    own_model = {"name": "clip_adapter"}

    optimiser: Optimiser | None = Adam(lr=5e-5, weight_decay=0.2)
    """The clients' optimiser: Adam with rate 5e-5 and weight decay 0.2 as in the paper."""

    def check(self, task: Task) -> None:
        if not isinstance(task.model.projector, FeatureAdapter):
            raise ValueError("trains CLIP's adapter alone: give it no model, or clip_adapter")
