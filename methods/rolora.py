"""RoLoRA: clients train the second factor of every branch in odd rounds, and the first one in even rounds.

Chen et al., "Robust Federated Finetuning of LLMs via Alternating Optimization of LoRA", NeurIPS 2025. A
layer gives Wx + s·B A x with s = α/r. Odd rounds: A is frozen, the client takes FedAvg's steps on the
cross-entropy over B and the head, and B ← Σ_k w_k B_k with w_k = n_k / Σ n. Even rounds: the same with A and
B exchanged. The frozen factor is common to all clients, so that the mean of the products is the product of
the means in every round, and yet both factors are learnt.

B comes first, since with B = 0 the gradient of A is 0: the other order would lose its first round. The paper
has equal weights, which `weighting: uniform` gives, and no head; ours is trained and averaged in all rounds,
as for the other methods. Only the trained factor travels up. Down, both do, so that clients that miss rounds
need no history; a client that takes part in every round knows one of them already.
"""

from collections.abc import Sequence

from methods.base import Reply, State, Task, Tree
from methods.modules.lora import shared_leaves
from methods.shared.one_factor import OneFactor


class RoLoRA(OneFactor):
    label = "RoLoRA"
    neutral = "trains one factor in a round"
    alternates = True

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        averaged, frozen = self.average(replies), server["frozen"]
        trained = [name for name in shared_leaves(task.model) if name not in frozen]
        both: Tree = averaged | frozen
        return {**server, "model": both.without(trained), "frozen": both.only(trained)}
