"""Halves of exchanges before round 1 in which only one side has something to say."""

from methods.base import Batches, Message, State, Task


class Upload:
    """Clients send; the server sends nothing."""

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return {}


class Download:
    """The server sends; clients keep what they get and send nothing."""

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        return {}, message
