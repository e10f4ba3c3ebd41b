"""Which domain, split and class a picture belongs to, according to the folders that contain it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

TRAIN = frozenset({"train", "training"})
TEST = frozenset({"test", "testing"})
VALIDATION = frozenset({"val", "valid", "validation"})
SPLITS = TRAIN | TEST | VALIDATION

LAYOUT = "arrange the pictures as DOMAIN/CLASS/*.jpg or CLASS/*.jpg, with train and test folders if you like"


class Picture(NamedTuple):
    domain: str
    split: str
    """The name of its split's folder in lower case, or empty."""
    class_name: str
    name: str


def arranged(names: Iterable[str], domain: str) -> list[Picture]:
    """Pictures `DOMAIN/CLASS/file` or `CLASS/file`, sorted; a ValueError says which one is out of place.

    Folders named train, test or val may be above or below those of the domains. Folders that all pictures
    have in common are ignored; a single domain is named after the last of them, or else `domain`.
    """
    folders = {name: name.split("/")[:-1] for name in names}
    if not folders:
        raise ValueError(f"there are no pictures; {LAYOUT}")
    shallowest = min(folders, key=lambda name: len(folders[name]))
    shared = min(_shared(list(folders.values())), max(len(folders[shallowest]) - 1, 0))
    above = [folder for folder in folders[shallowest][:shared] if folder.lower() not in SPLITS]
    levels = {name: parts[shared:] for name, parts in folders.items()}
    depth = len(levels[shallowest])
    stray = next((name for name, parts in levels.items() if len(parts) != depth), None)
    if stray is not None:
        raise ValueError(f"{shallowest} and {stray} are at different depths; {LAYOUT}")
    at = _split_level(list(levels.values()), depth)
    if depth - (at is not None) not in (1, 2):
        raise ValueError(f"{shallowest} is in {'too many folders' if depth else 'no folder'}; {LAYOUT}")
    pictures = []
    for name, parts in levels.items():
        split = "" if at is None else parts[at].lower()
        rest = [part for level, part in enumerate(parts) if level != at]
        pictures.append(
            Picture(rest[0] if len(rest) == 2 else (above or [domain])[-1], split, rest[-1], name)
        )
    return sorted(pictures)


def in_test(splits: Sequence[str]) -> list[bool] | None:
    """Which pictures of a domain are test, by the names of their folders; None if no folder says so.

    A folder `val` holds the test set if there is no folder `test`, and more train pictures if there is one.
    """
    held_out = TEST if TEST.intersection(splits) else VALIDATION
    marks = [split in held_out for split in splits]
    return marks if any(marks) else None


def _shared(folders: list[list[str]]) -> int:
    """How many folders all pictures have in common, from the top."""
    first, last = min(folders), max(folders)
    return next(
        (i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(map(len, folders))
    )


def _split_level(levels: list[list[str]], depth: int) -> int | None:
    """The level above the classes whose folders are named after splits, train among them."""
    for level in range(depth - 1):
        found = {parts[level].lower() for parts in levels}
        if found <= SPLITS and found & TRAIN:
            return level
    return None
