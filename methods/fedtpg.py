"""FedTPG: on a frozen CLIP model, clients train and share a network that writes the prompts.

Qiu et al., "Federated Text-driven Prompt Generation for Vision-Language Models", ICLR 2024. Four learnable
queries cross-attend (four heads) to the text embeddings of the classes' names and become the context words of
every class's prompt, with names as unit vectors and no residual around the attention; the frozen text tower
turns the prompts into text features, and logits are scaled cosines of these with the image's. Only the
generator is trained, sent and averaged, as in FedAvg. Layer norms and two more layers around the attention
are as in the public code.

Deviations: the public code has GEGLU between these layers, weight decay 1e-5 and a cosine schedule; here it
is GELU, no decay and a constant rate.
"""

from methods.base import SGD, Optimiser, Task
from methods.fedavg import FedAvg
from methods.modules.clip import PromptedClassifier, PromptGenerator


class FedTPG(FedAvg):
    label = "FedTPG"
    own_model = {"name": "prompt_generator"}

    optimiser: Optimiser | None = SGD(lr=3e-3, momentum=0.9)
    """The clients' optimiser: SGD with rate 3e-3 and momentum 0.9 as in the paper."""

    def check(self, task: Task) -> None:
        classifier = task.model.classifier
        if not (
            isinstance(classifier, PromptedClassifier) and isinstance(classifier.generator, PromptGenerator)
        ):
            raise ValueError("trains a prompt generator alone: give it no model, or prompt_generator")
