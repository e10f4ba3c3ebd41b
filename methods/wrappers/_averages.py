"""What wrappers that change the average over clients ask of the method inside them."""

from collections.abc import Sequence

from methods.base import FedAlgorithm, Reply, State, Task, Tree
from methods.fedavg import FedAvg
from methods.shared.server_optimisers import FedOpt
from methods.wrappers.base import Wrapper


def require_average(method: FedAlgorithm, verb: str) -> None:
    """Raise ValueError unless the server averages models, or takes an optimiser's step along the average.

    Such a server can be given one reply in place of all.
    """
    inmost = method
    while isinstance(inmost, Wrapper) and type(inmost).aggregate is Wrapper.aggregate:
        inmost = inmost.trained
    if type(inmost).aggregate not in (FedAvg.aggregate, FedOpt.aggregate):
        raise ValueError(
            f"cannot {verb} {method.label}, whose server does more than average models; choose a method "
            "whose server takes FedAvg's average, as in fedprox, or a step along it, as in fedadam"
        )


def sent_model(method: FedAlgorithm, task: Task, server: State, reply: Reply) -> Tree:
    """The model that the server sent to this client in this round."""
    model: Tree = method.down(task, server, reply.client)["model"]
    return model


def in_place_of(replies: Sequence[Reply], model: Tree) -> Reply:
    """One reply with this model that stands for all of a round."""
    return Reply(replies[0].client, sum(reply.samples for reply in replies), {"model": model})
