"""What server and clients keep, what they send to each other, and the three parts of an exchange."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from torch import Tensor

    from methods.core.batches import Batches
    from methods.core.task import Task

State: TypeAlias = dict[str, Any]
"""Names to trees and tensors (or dictionaries of them). Its shapes are the same for all clients."""
Message: TypeAlias = dict[str, Any]
"""What travels, in the same form as a state. Its bytes are counted."""


class Reply(NamedTuple):
    """A client's answer to the server."""

    client: int
    samples: int
    """How many samples the client trained on."""
    content: Message
    sound: bool = True
    """False if any number in it is NaN or infinite: such a reply is left out of the aggregation."""
    terms: dict[str, Tensor] | None = None
    """The means of the loss's terms over the client's steps, if they are recorded; no part of the message."""


class Exchange(Protocol):
    """The server sends, clients work, the server combines their replies. Every method is one."""

    def down(self, task: Task, server: State, client_id: int) -> Message:
        """What the server sends to a client."""

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        """A client's work: its reply, and the entries of its private state that changed."""

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        """The server's next state, from the replies in the order of the clients' ids."""
