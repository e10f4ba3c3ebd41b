"""Methods whose clients send everything once, before round 1."""

from abc import ABC
from collections.abc import Sequence

from methods.base import Batches, FedAlgorithm, Message, Reply, State, Task


class OneRound(FedAlgorithm, ABC):
    """Its prelude does all the work; in the rounds nothing travels and nothing changes.

    So a suite can give it as many rounds as the others: its accuracy stays as it is, and so do its bytes.
    """

    one_round = True
    neutral = "is done after one exchange"

    def check(self, task: Task) -> None:
        is_embedded = task.input_shape is None or len(task.input_shape) == 1
        if task.has_trainable_embeddings or not is_embedded:
            raise ValueError(
                "works on features that are not trained: choose the model {name: head} and give an encoder "
                "with --encoder"
            )

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return {}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        return {}, {}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        return server
