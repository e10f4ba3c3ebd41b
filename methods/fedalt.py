"""FedALT: every client goes on with a branch of its own, beside a frozen one that stands for all the others.

Bian et al., "FedALT: Federated Fine-Tuning Through Adaptive Local Training with Rest-of-World LoRA", AAAI
2026. A layer gives Wx + s·g_1(x)·B_r A_r x + s·g_2(x)·B_l A_l x with s = α/r and g(x) = softmax(G x), for
every token. Client: steps on the cross-entropy over its own A_l, B_l, router G (2 × width) and head, from
where it left off, with the rest of the world's A_r and B_r as they were sent. Up: A_l and B_l. Down: the
plain mean of the others', A_r = mean_{j≠k} A_l^j and B_r = mean_{j≠k} B_l^j, factor by factor as in the
authors' code.

At the start all clients have the same A_l = A_r, drawn from the seed, B_l = B_r = 0, and the same G, drawn as
the weights of a linear layer (the authors draw A_l per client, which makes the mean of the A smaller). Where
not everybody takes part, the server remembers what it last heard of each client, and averages over the others
that it has heard of; before there are any, it sends the initial factors. Language models have no head; ours
is private. There is no global model: a client predicts with the A_r and B_r that it last received.
"""

from collections.abc import Sequence

from torch import Tensor

from methods.base import (
    Batch,
    Batches,
    FedAlgorithm,
    Message,
    Reply,
    State,
    Task,
    Tree,
    cross_entropy,
    weighted_sum,
)
from methods.modules.lora import (
    PRIVATE,
    ROUTER,
    SHARED,
    first_factor,
    lora_layers,
    require_lora,
    shared_leaves,
)


class FedALT(FedAlgorithm):
    label = "FedALT"
    neutral = "has no global model"
    has_global_model = False
    reveals = {"own": "the client's own branch is what FedALT's clients send"}

    def check(self, task: Task) -> None:
        require_lora(task.model)

    def server(self, task: Task) -> State:
        return {"heard": {}, "start": task.initial.only(shared_leaves(task.model))}

    def client(self, task: Task) -> State:
        draw = task.generator("routers")
        routers = {
            f"{name}.{ROUTER}": first_factor(2, layer.in_features, draw)
            for name, layer in lora_layers(task.model).items()
        }
        start = task.initial.only(shared_leaves(task.model))
        return {
            "own": renamed(start, SHARED, PRIVATE),
            "rest": start,
            "router": Tree(routers).to(task.device),
            "head": task.initial.without(start),
        }

    def down(self, task: Task, server: State, client_id: int) -> Message:
        others = [own for client, own in server["heard"].items() if client != str(client_id)]
        if not others:
            return {"rest": server["start"]}
        mean = weighted_sum(others, [1 / len(others)] * len(others))
        return {"rest": renamed(mean, PRIVATE, SHARED)}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        def loss(params: Tree, batch: Batch) -> Tensor:
            return cross_entropy(task.logits(message["rest"] | params, batch.x), batch)

        start = client["own"] | client["router"] | client["head"]
        trained = task.train(start, loss, batches, also=[*client["own"], *client["router"]])
        kept = {part: trained.only(client[part]) for part in ("own", "router", "head")}
        return {"own": kept["own"]}, {**kept, "rest": message["rest"]}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        new = {str(reply.client): reply.content["own"] for reply in replies}
        return {**server, "heard": {**server["heard"], **new}}

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        assert client is not None, "there is no global model"
        own: Tree = client["rest"] | client["own"] | client["router"] | client["head"]
        return own


def renamed(leaves: Tree, old: str, new: str) -> Tree:
    """The factors of one adapter under the names of another's."""
    return Tree({name.replace(f".{old}.", f".{new}."): leaf for name, leaf in leaves.items()})
