"""PF2LoRA: every client also trains a small private branch, whose next step the shared branch foresees.

Hao et al., "Personalized Federated Fine-tuning for Heterogeneous Data: An Automatic Rank Learning Approach
via Two-Level LoRA", arXiv 2503.03920, 2025. A client's own layer gives Wx + s·B A x + s·D_k C_k x with s =
α/r; the global model has no D_k C_k. With x the shared branch and the head, and y_k the client's C_k and
D_k, the paper minimises mean_k f_k(x, y_k*(x)) over x, where y_k*(x) minimises f_k(x, y), both by one step
per batch:
    y⁺ = y − η_p ∇_y f_k(x, y),
    x moves along ∇_x f_k(x, y⁺) − η_p ∇²_xy f_k(x, y) ∇_y f_k(x, y⁺),
that is, along the gradient of f_k(x, y − η_p ∇_y f_k(x, y)) with respect to x. x moves by the suite's
optimiser (AdamW in the paper), y by plain SGD. x travels and is averaged, x ← Σ_k w_k x_k with
w_k = n_k / Σ n; y stays. It begins with C drawn from the seed and D = 0. The rank of B A + D_k C_k is
anywhere from r − r̃ to r + r̃, which the paper calls automatic rank learning. Versions that prune the private
rank by scores are not the paper's.

Defaults: r̃ = r/4, as the paper's 2 beside 8. η_p has no value that we could verify; 0.1 is ours. Both
gradients of a step are of the same batch. The weights are equal in the paper (`weighting: uniform`). The
head belongs to the shared part, and a client's own model uses the server's. Private factors have the shape
of the shared ones, with 0 in what is beyond r̃, where the gradients are 0, too. A step costs about three of
FedAvg's.
"""

from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Loss, Message, State, Task, Tree, cross_entropy, is_off
from methods.fedavg import FedAvg
from methods.modules.lora import PRIVATE, factors_of, fresh_branch, lora_layers, require_lora
from methods.shared.client_ranks import first_rows
from methods.shared.slopes import slope


class PF2LoRA(FedAvg):
    label = "PF2LoRA"
    neutral = {"private_lr": 0.0}

    private_lr: float = Field(default=0.1, ge=0)
    """η_p, the rate of the private branch's SGD; 0: there is none."""
    private_rank: int | None = Field(default=None, ge=1)
    """r̃, the private branch's rank, at most the model's; None: a quarter of that, at least 1."""

    def check(self, task: Task) -> None:
        require_lora(task.model)
        most = min(layer.r[PRIVATE] for layer in lora_layers(task.model).values())
        if self.private_rank is not None and self.private_rank > most:
            raise ValueError(f"has private rank {self.private_rank}, but the model's branches have {most}")

    def client(self, task: Task) -> State:
        branch = fresh_branch(task.model, task.generator("private adapters"))
        for name in factors_of(task.model, PRIVATE)[0]:
            rank = self.private_rank or max(1, len(branch[name]) // 4)
            branch[name] = first_rows(branch[name], rank)
        return {"private": Tree(branch).to(task.device)}

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        own = list(client["private"])

        def loss(params: Tree, batch: Batch) -> Tensor:
            """Its gradients are those of both levels; its value is f(x, y⁺)."""
            shared, private = params.without(own), params.only(own)

            def below(private: Tree) -> Tensor:
                return cross_entropy(task.logits(shared | private, batch.x), batch.unrecorded())

            gradient = slope(below, private, batch.stacked)
            ahead = private.detach() - self.private_lr * gradient
            along = gradient.detach().dot(private)
            return cross_entropy(task.logits(shared | ahead, batch.x), batch) + along - along.detach()

        return loss

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        private: Tree = client["private"]
        if is_off(self.private_lr):
            return {
                "model": task.train(message["model"], super().objective(task, client, message), batches)
            }, {}
        loss = self.objective(task, client, message)
        start = message["model"] | private
        trained = task.train(start, loss, batches, also=private, plain_rate=self.private_lr)
        return {"model": trained.only(message["model"])}, {"private": trained.only(private)}

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        model: Tree = server["model"]
        return model if client is None else model | client["private"]
