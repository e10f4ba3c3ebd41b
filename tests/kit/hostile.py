"""Inputs that somebody means to break the harness with, and a watch on what is written because of them."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from bench.errors import UserError
from bench.text import one_line

EXAMPLES = int(os.environ.get("BENCH_FUZZ", "0"))
"""Inputs of each kind; 0: a few, always the same ones, as part of the usual tests."""

FUZZ = settings(
    max_examples=EXAMPLES or 40,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

TEXTS = (
    "",
    "..",
    "../../outside",
    "/etc/passwd",
    "C:\\outside",
    "a/../../outside",
    "outside.py",
    "~/outside",
    "\0",
    "\x1b[2J\x1b]0;title\x07",
    "two\nlines",
    "\u202eright to left",
    "\ud800",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)//",
    "=cmd|' /C calc'!A0",
    "@SUM(1)",
    "\\input{/etc/passwd}",
    "$\\frac$ %",
    "[/red][link=x]",
    "{0.__class__} %s ${HOME} `id`",
    "__proto__",
    "fedavg",
    "local",
    "x" * 300,
)
NUMBERS = (0, -1, 1, 2**31, 2**63, 10**30, 10**400, 0.5, -0.0, 1e-320, 1e308, float("inf"), float("nan"))

SCALARS = st.one_of(
    st.sampled_from(TEXTS),
    st.sampled_from(NUMBERS),
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(TEXTS) | st.text(max_size=5), inner)
    ),
    max_leaves=5,
)


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@st.composite
def damaged(draw: st.DrawFn, content: Any, most: int = 3) -> Any:
    """The content with a few of its values replaced, removed, renamed or repeated."""
    content = copy.deepcopy(content)
    for _ in range(draw(st.integers(1, most))):
        place = draw(st.sampled_from(list(_places(content))))
        content = _changed(draw, content, place)
    return content


def _places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items: Iterable[tuple[Any, Any]] = content.items() if isinstance(content, dict) else ()
    if isinstance(content, list):
        items = enumerate(content)
    for key, value in items:
        yield from _places(value, (*path, key))


def _changed(draw: st.DrawFn, content: Any, path: tuple[Any, ...]) -> Any:
    if not path:
        return draw(VALUES) if draw(st.integers(0, 19)) == 0 else content
    *outer, last = path
    holder = content
    for key in outer:
        holder = holder[key]
    kind = draw(st.sampled_from(("replace", "replace", "replace", "remove", "rename", "repeat", "nest")))
    if kind == "remove":
        del holder[last]
    elif kind == "rename" and isinstance(holder, dict):
        holder[draw(st.sampled_from(TEXTS))] = holder.pop(last)
    elif kind == "repeat" and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[last]))
    elif kind == "nest" and draw(st.integers(0, 3)) == 0:
        holder[last] = nested(draw(st.sampled_from((30, 60, 500))))
    else:
        holder[last] = draw(VALUES)
    return content


@st.composite
def damaged_bytes(draw: st.DrawFn, data: bytes) -> bytes:
    """The bytes with some of them changed, cut off or put in."""
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(changed)))
        end = at + draw(st.integers(0, 12))
        changed[at:end] = draw(st.binary(max_size=12))
    return bytes(changed)


OUTCOMES: dict[str, list[str]] = {}
"""Kind of input → what became of each."""


def outcome(act: Callable[[], object], kind: str) -> str:
    """`read` or `refused`; anything but a sentence for the user fails the test."""
    end = _outcome(act)
    OUTCOMES.setdefault(kind, []).append(end)
    return end


def _outcome(act: Callable[[], object]) -> str:
    try:
        act()
    except UserError as error:
        assert str(error).strip()
        assert len(one_line(str(error))) < 2000, "nobody reads a sentence this long"
        return "refused"
    return "read"


_WRITING = {
    "open": lambda path, mode, flags: path if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) else None,
    "os.mkdir": lambda path, *_: path,
    "os.rename": lambda source, target, *_: target,
    "os.remove": lambda path, *_: path,
    "os.rmdir": lambda path, *_: path,
    "os.symlink": lambda source, target, *_: target,
}
_watching: list[list[Path]] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and event in _WRITING:
        path = _WRITING[event](*arguments)
        if isinstance(path, str | bytes | os.PathLike):
            _watching[-1].append(Path(os.fsdecode(path)).absolute())


@contextmanager
def no_write_outside(*allowed: Path) -> Iterator[None]:
    """Fails if this process writes a file anywhere else, as Python itself reports it."""
    if not hasattr(sys, "_bench_audited"):
        sys.addaudithook(_audit)  # cannot be taken away again, so it is added once
        sys._bench_audited = True  # type: ignore[attr-defined]
    written: list[Path] = []
    _watching.append(written)
    try:
        yield
    finally:
        _watching.remove(written)
    homes = [place.resolve() for place in allowed]
    outside = [path for path in written if not any(map(path.resolve().is_relative_to, homes))]
    assert [path for path in outside if not _harmless(path)] == []


def _harmless(path: Path) -> bool:
    return str(path) == os.devnull or "__pycache__" in path.parts


def tallies() -> Iterator[tuple[str, int, str]]:
    """What became of all inputs: their kind, their number, and the outcome in words."""
    for kind, ends in OUTCOMES.items():
        read = sum(end == "read" for end in ends)
        yield kind, len(ends), f"{read} read, {len(ends) - read} refused with a one-line error"
