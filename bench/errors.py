"""The one exception that means "the user can mend this": shown as a sentence, exit code 2."""

import difflib
import errno
from collections.abc import Iterable
from pathlib import Path
from typing import Final

FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a disk, a quota or a limit that leaves no room."""


class UserError(Exception):
    """A mistake in a command, a file or the data; its text says what, where and what to do."""


def mendable(error: BaseException, place: Path | None = None) -> UserError | None:
    """What the user can mend of an error or of those that it came from: a mistake, or a full disk."""
    seen: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in seen:
        if isinstance(current, UserError):
            return current
        if isinstance(current, OSError) and current.errno in FULL:
            where = current.filename or place or "a file"
            return UserError(
                f"cannot write {where}: {current.strerror}; make room there and run the same command again"
            )
        seen.append(current)
        current = current.__cause__ or current.__context__
    return None


def nearest(name: str, known: Iterable[str]) -> str:
    """The hint that follows an unknown name: the likeliest right one, or all there are."""
    names = sorted(set(known))
    likeness = 0.5 if len(name) < 4 else 0.6  # two letters in the wrong order are half of `rl`
    close = difflib.get_close_matches(name, names, n=1, cutoff=likeness)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known: {', '.join(names)}" if names else "none are known"
