"""Models of which every client keeps a part to itself, beside the part that all share."""

from abc import ABC, abstractmethod

from methods.base import Batches, FedAlgorithm, Message, State, Task, Tree


class OwnPart(FedAlgorithm, ABC):
    """Both parts are trained together; only the shared one travels. There is no global model."""

    has_global_model = False

    @abstractmethod
    def own(self, model: Tree) -> Tree:
        """The leaves of a model that stay with the client."""

    def check(self, task: Task) -> None:
        if not (task.has_trainable_embeddings and task.trained(task.initial.part("classifier"))):
            raise ValueError(
                "divides a model into classifier and the rest, of which one has nothing to train here: "
                "choose a model with trainable features and a trainable classifier"
            )

    def server(self, task: Task) -> State:
        return {"model": task.initial.without(self.own(task.initial))}

    def client(self, task: Task) -> State:
        return {"own": self.own(task.initial)}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        own: Tree = client["own"]
        trained = task.train(message["model"] | own, self.objective(task, client, message), batches)
        return {"model": trained.without(own)}, {"own": trained.only(own)}

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        assert client is not None, "there is no global model"
        own: Tree = server["model"] | client["own"]
        return own
