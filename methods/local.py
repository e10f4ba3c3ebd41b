"""Local training only: nothing is sent. The lower bound of every table.

Every client trains its own model on its own data, with as many steps as it would take in a federation. A
table shows, for each domain, the mean accuracy over all clients' models.
"""

from collections.abc import Sequence

from methods.base import Batches, FedAlgorithm, Message, Reply, State, Task


class Local(FedAlgorithm):
    label = "Local"
    neutral = "has no server model"
    has_global_model = False

    def server(self, task: Task) -> State:
        return {}

    def client(self, task: Task) -> State:
        return {"model": task.initial}

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return {}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        return {}, super().local(task, client, client, batches)[0]

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        return server
