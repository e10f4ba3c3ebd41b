"""The rows of a suite by name: a label means one row, a method's name all rows of the method."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from bench.errors import UserError, nearest
from bench.suite.methods import METHODS
from bench.suite.model import MethodEntry, Suite


def label_of(entry: MethodEntry) -> str:
    """What the row is called in tables."""
    return entry.label or METHODS.load(entry.name).label


def file_name_of(entry: MethodEntry) -> str:
    """What files about the row are called: its method's name, unless the suite gives it a label."""
    return re.sub(r"[^\w+]+", "_", entry.label.lower()).strip("_") if entry.label else entry.name


def check_file_names(entries: Sequence[MethodEntry]) -> None:
    """Refuse rows whose files would have the same name."""
    labels: dict[str, str] = {}
    for entry in entries:
        name, label = file_name_of(entry), label_of(entry)
        if name in labels:
            raise UserError(
                f"the files of the rows '{labels[name]}' and '{label}' would both be called {name}; give one "
                "of them another label in the suite"
            )
        labels[name] = label


def with_rows(suite: Suite, wanted: Iterable[str | MethodEntry]) -> Suite:
    """The suite with these rows only.

    A text is the label of a row, or the name or the file of a method: all of its rows in the suite, or else
    one with its defaults. A label with commas may come in pieces, as the command line splits it.
    """
    pieces, chosen = list(wanted), []
    while pieces:
        first = pieces[0]
        if isinstance(first, MethodEntry):
            chosen.append(pieces.pop(0))
            continue
        found, used = _labelled(suite, pieces) or (_of_method(suite, first), 1)
        if all(entry in chosen for entry in found):
            raise UserError(f"the row '{label_of(found[0])}' is asked for twice; name each row once")
        chosen += [entry for entry in found if entry not in chosen]
        del pieces[:used]
    return suite.model_copy(update={"methods": tuple(chosen)})


def _labelled(suite: Suite, pieces: Sequence[str | MethodEntry]) -> tuple[list[MethodEntry], int] | None:
    """The row whose label the first pieces are, and how many of them; None if there is none."""
    texts = [piece for piece in pieces if isinstance(piece, str)]
    labels = {entry.label: entry for entry in suite.methods if entry.label}
    for count in range(len(texts), 0, -1):
        if (label := ", ".join(texts[:count])) in labels:
            return [labels[label]], count
    return None


def _of_method(suite: Suite, text: str) -> list[MethodEntry]:
    name = METHODS.resolve(text)
    if rows := [entry for entry in suite.methods if name in (entry.name, label_of(entry))]:
        return rows
    if " " in text:  # no method is called so
        labels = [label_of(entry) for entry in suite.methods]
        raise UserError(f"suite '{suite.suite}' has no row '{text}'; {nearest(text, labels)}")
    METHODS.load(name)
    return [MethodEntry(name=name)]
