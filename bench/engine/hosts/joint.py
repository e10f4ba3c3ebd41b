"""Requests of several cells that are answered together, or one by one where that does not work."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, Protocol, TypeVar


class Answerable(Protocol):
    def alone(self) -> Any:
        """The answer to this request by itself."""


Request = TypeVar("Request", bound=Answerable)
Answer = TypeVar("Answer")


class JointAnswers(Generic[Request, Answer]):
    """Answers requests together that have the same key, until this fails for the first time."""

    def __init__(
        self, key: Callable[[Request], Hashable], together: Callable[[Sequence[Request]], Sequence[Answer]]
    ) -> None:
        self._key, self._together = key, together
        self.works = True

    def to(self, requests: Sequence[Request]) -> list[Answer | Exception]:
        """In the same order; an exception where a request by itself fails."""
        groups: dict[Hashable, list[int]] = {}
        for position, request in enumerate(requests):
            groups.setdefault(self._key(request), []).append(position)
        found: dict[int, Answer | Exception] = {}
        for positions in groups.values():
            found |= zip(positions, self._of_group([requests[at] for at in positions]), strict=True)
        return [found[position] for position in range(len(requests))]

    def _of_group(self, requests: Sequence[Request]) -> Sequence[Answer | Exception]:
        if len(requests) > 1 and self.works:
            try:
                return self._together(requests)
            except Exception:  # which comes again below if it has nothing to do with the stack
                self.works = False
        return [self._alone(request) for request in requests]

    def _alone(self, request: Request) -> Answer | Exception:
        try:
            answer: Answer = request.alone()
        except Exception as error:
            return error
        return answer
