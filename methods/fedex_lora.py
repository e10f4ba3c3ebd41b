"""FedEx-LoRA: what the mean of the factors misses of the mean of the products goes into the frozen weights.

Singhal et al., "FedEx-LoRA: Exact Aggregation for Federated and Efficient Fine-Tuning of Large Language
Models", ACL 2025. A layer gives (W + R)x + s·B A x, with R = 0 at the start. Client: FedAvg's steps on the
cross-entropy over A, B and the head. Server: Ā = Σ_k w_k A_k, B̄ = Σ_k w_k B_k and the head likewise, with
w_k = n_k / Σ n, and R ← R + s·(Σ_k w_k B_k A_k − B̄ Ā), in float64. So W + R + s·B̄Ā is exactly the mean of the
clients' effective weights W + R + s·B_k A_k.

R travels down in full, so that clients that miss rounds need no history; the paper sends the residual of a
round as factors of rank up to (clients × r), or cut by a singular value decomposition. The authors' code
takes plain means (`weighting: uniform`).
"""

from collections.abc import Sequence

from methods.base import Reply, State, Task, Tree
from methods.shared.moved_weights import MovedWeights, weight_of
from methods.shared.products import mean_products


class FedExLoRA(MovedWeights):
    label = "FedEx-LoRA"
    neutral = "moves the frozen weights at every setting"

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        averaged = self.average(replies)
        missed = {}
        for product in mean_products(task, replies, self.weights(replies)):
            of_means = averaged[product.second].double() @ averaged[product.first].double()
            residual = server["residual"][weight_of(product.layer)]
            step = product.scale * (product.mean - of_means)
            missed[weight_of(product.layer)] = (residual.double() + step).to(residual.dtype)
        return {**server, "model": averaged, "residual": Tree(missed)}
