"""Models of which every client keeps a part to itself, beside the part that all share."""

from abc import ABC, abstractmethod

from methods.base import Batches, FedAlgorithm, Message, State, Task, Tree

HEAD = "classifier."


class OwnPart(FedAlgorithm, ABC):
    """Both parts are trained together; only the shared one travels. There is no global model."""

    has_global_model = False

    @abstractmethod
    def is_own(self, name: str) -> bool:
        """Whether a parameter or buffer of this name stays with the client."""

    def check(self, task: Task) -> None:
        if len({name.startswith(HEAD) for name in task.trainable}) < 2:
            raise ValueError(
                "divides a model into classifier and the rest, of which one has nothing to train here: "
                "choose a model with trainable features and a trainable classifier"
            )

    def server(self, task: Task) -> State:
        return {"model": task.initial.only(name for name in task.initial if not self.is_own(name))}

    def client(self, task: Task) -> State:
        return {"own": task.initial.only(name for name in task.initial if self.is_own(name))}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        own: Tree = client["own"]
        y = task.train(message["model"] | own, self.objective(task, client, message), batches)
        return {"model": y.without(own)}, {"own": y.only(own)}

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        assert client is not None, "there is no global model"
        own: Tree = server["model"] | client["own"]
        return own
