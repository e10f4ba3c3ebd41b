"""FedPGP: shared prompt words that hold on to CLIP's knowledge, with a private change of low rank per client.

Cui et al., "Harmonizing Generalization and Personalization in Federated Prompt Learning", ICML 2024. With P
the shared words (16 × d), a client's own words are P + UV, where U (16 × b) and V (b × d) stay with it. T(·)
are the text features of the classes' prompts with given words, of length 1, and T₀ those of a written prompt.
A client minimises
    CE of the logits scale · cos(x, T(P + UV)) + μ · mean over classes of
    −log( e^{⟨T(P), T₀⟩/τ} / (e^{⟨T(P), T₀⟩/τ} + e^{⟨T(P), T(P + UV)⟩/τ}) )
over P, U and V at once: the shared words are pulled to the written prompt, and away from the client's own. P
travels and is averaged as in FedAvg. The global model predicts with P, a client with the server's P and its
own UV.

Defaults: rank b = 8 and μ = 1 as in the paper; τ = 0.5 and the start, U from N(0, 0.02²) and V = 0, are
choices of ours, as is the rate 0.001 of SGD, which is PromptFL's.
"""

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Message, State, Task, Tree, cross_entropy, is_off
from methods.modules.clip import GuidedClassifier
from methods.promptfl import PromptFL

WORDS = "classifier.generator.words"
FACTORS = ("own_tall", "own_wide")


class FedPGP(PromptFL):
    label = "FedPGP"
    neutral = "trains private words at every setting"

    rank: int = Field(default=8, ge=1)
    """b, the rank of a client's own change of the words; 8 as in the paper."""
    mu: float = Field(default=1.0, ge=0)
    """μ, the weight of the contrastive term; 1 as in the paper."""
    temperature: float = Field(default=0.5, gt=0)
    """τ of the contrastive term."""

    def check(self, task: Task) -> None:
        if not isinstance(task.model.classifier, GuidedClassifier):
            raise ValueError("trains the words of prompts alone: give it no model, or prompt_context")

    def client(self, task: Task) -> State:
        tokens, width = task.initial[WORDS].shape
        tall = 0.02 * torch.randn(tokens, self.rank, generator=task.generator("private words"))
        factors = (tall, torch.zeros(self.rank, width))
        return {
            "factors": Tree({name: leaf.to(task.device) for name, leaf in zip(FACTORS, factors, strict=True)})
        }

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        written = task.model.classifier.written
        assert isinstance(written, Tensor)

        def loss(params: Tree, batch: Batch) -> Tensor:
            scaled = scaled_texts(task, own_words(params.without(FACTORS), params.only(FACTORS)))
            logits = F.normalize(task.embed(params, batch.x), dim=-1) @ scaled
            if is_off(self.mu):
                return cross_entropy(logits, batch)
            own, shared = (
                F.normalize(each, dim=0).T for each in (scaled, scaled_texts(task, params.without(FACTORS)))
            )
            to_written, to_own = ((shared * other).sum(dim=1) for other in (written, own))
            contrast = F.softplus((to_own - to_written) / self.temperature).mean()
            return cross_entropy(logits, batch) + batch.term("contrast", self.mu * contrast)

        start = message["model"] | client["factors"]
        trained = task.train(start, loss, batches, also=FACTORS)
        return {"model": trained.without(FACTORS)}, {"factors": trained.only(FACTORS)}

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        shared: Tree = server["model"]
        return shared if client is None else own_words(shared, client["factors"])


def own_words(model: Tree, factors: Tree) -> Tree:
    """The model with the words P + UV."""
    tall, wide = (factors[name] for name in FACTORS)
    return model | Tree({WORDS: model[WORDS] + tall @ wide})


def scaled_texts(task: Task, model: Tree) -> Tensor:
    """scale · Tᵀ (features × classes), which are the logits of the unit vectors."""
    return task.classify(model, torch.eye(task.model.embedding_size, device=task.device))
