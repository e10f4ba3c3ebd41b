"""PromptFL: on a frozen CLIP model, clients train and share the words before the classes' names.

Guo et al., "PromptFL: Let Federated Participants Cooperatively Learn Prompts Instead of Models", IEEE TMC
2023. A class's prompt is 16 learnable words, the same for all classes, and its name (CoOp's shared context);
the frozen text tower turns prompts into text features, and logits are scaled cosines of these with the
image's. Only the words are trained, by CE, sent, and averaged as in FedAvg. They start from N(0, 0.02²).

Defaults: SGD with rate 0.001, as in the paper's experiments; its schedule is left out.
"""

from methods.base import SGD, Optimiser, Task
from methods.fedavg import FedAvg
from methods.modules.clip import ContextWords, PromptedClassifier


class PromptFL(FedAvg):
    label = "PromptFL"
    own_model = {"name": "prompt_context"}

    optimiser: Optimiser | None = SGD(lr=1e-3)
    """The clients' optimiser: SGD with rate 0.001 as in the paper."""

    def check(self, task: Task) -> None:
        classifier = task.model.classifier
        if not (
            isinstance(classifier, PromptedClassifier) and isinstance(classifier.generator, ContextWords)
        ):
            raise ValueError("trains the words of prompts alone: give it no model, or prompt_context")
