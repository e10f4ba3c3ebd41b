"""The one exception that means "the user can mend this": shown as a sentence, exit code 2."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A mistake in a command, a file or the data; its text says what, where and what to do."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The hint that follows an unknown name: the likeliest right one, or all there are."""
    names = sorted(set(known))
    likeness = 0.5 if len(name) < 4 else 0.6  # two letters in the wrong order are half of `rl`
    close = difflib.get_close_matches(name, names, n=1, cutoff=likeness)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known: {', '.join(names)}" if names else "none are known"
