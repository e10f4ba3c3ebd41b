"""Forms in which array datasets also come as pictures: one folder per class, or a list of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bench.data.array_files import Form
from bench.data.base import Split, TrainTest
from bench.data.image_folders import picture_names
from bench.data.images import decoded
from bench.data.layouts import Picture, arranged, in_test
from bench.data.sources import Source, open_source, reading
from bench.errors import UserError, nearest


def class_folders(
    archives: Sequence[str], classes: Sequence[str], aliases: Mapping[str, str] | None = None
) -> tuple[Form, ...]:
    """`train/CLASS/*.png` and `test/CLASS/*.png`, in the dataset's folder or in one of these archives.

    Classes go by name or by number.
    """

    def split(source: Source, pictures: Sequence[Picture], size: int) -> Split:
        labels = [_label(source, picture, classes, aliases or {}) for picture in pictures]
        return _split(source, list(zip(labels, (picture.name for picture in pictures), strict=True)), size)

    def read_folders(paths: Sequence[Path], size: int) -> TrainTest:
        sources = [open_source(path.parent) for path in paths]
        return TrainTest(*(split(source, _arranged(source), size) for source in sources))

    def read_archive(paths: Sequence[Path], size: int) -> TrainTest:
        source = open_source(paths[0])
        pictures = _arranged(source)
        marks = in_test([picture.split for picture in pictures])
        if marks is None:
            raise UserError(f"{source.path} has no pictures train/CLASS/*.png and test/CLASS/*.png")
        parts = [
            [p for p, mark in zip(pictures, marks, strict=True) if mark == test] for test in (False, True)
        ]
        return TrainTest(*(split(source, part, size) for part in parts))

    first = f"[{classes[0][0]}{classes[0][0].upper()}]{classes[0][1:]}"
    folders = [Form((f"train/{name}", f"test/{name}"), read_folders) for name in (first, "0")]
    return (*folders, *(Form((archive,), read_archive) for archive in archives))


def listed_labels(folder: str, archives: Sequence[str], images: Mapping[str, str]) -> tuple[Form, ...]:
    """Folders of pictures beside files with a line `name.png label` for each of them.

    `images` maps train and test to the name of their folder; the labels are in NAME_labels.txt. All are in
    `folder`, in the dataset's folder itself, or in one of these archives.
    """
    names = [(images[part], f"{images[part]}_labels.txt") for part in ("train", "test")]

    def read_folders(paths: Sequence[Path], size: int) -> TrainTest:
        def split(pictures: Path, labels: Path) -> Split:
            with reading(labels):
                lines = labels.read_text(encoding="utf-8")
            source = open_source(pictures)
            return _split(source, _listed(labels, lines, {name: name for name in source.names}), size)

        return TrainTest(split(paths[0], paths[1]), split(paths[2], paths[3]))

    def read_archive(paths: Sequence[Path], size: int) -> TrainTest:
        source = open_source(paths[0])

        def split(pictures: str, labels: str) -> Split:
            file = next((name for name in source.names if name.rpartition("/")[2] == labels), None)
            if file is None:
                raise UserError(f"{source.path} lacks {labels}; get it again")
            inside = {
                name.rpartition("/")[2]: name for name in source.names if name.split("/")[-2:-1] == [pictures]
            }
            lines = source.read(file).decode()
            return _split(source, _listed(source.path / file, lines, inside), size)

        return TrainTest(*(split(*pair) for pair in names))

    flat = [name for pair in names for name in pair]
    return (
        Form(tuple(f"{folder}/{name}" for name in flat), read_folders),
        Form(tuple(flat), read_folders),
        *(Form((archive,), read_archive) for archive in archives),
    )


def _listed(file: Path, lines: str, known: Mapping[str, str]) -> list[tuple[int, str]]:
    """Label and full name of each listed picture; all of them must be there."""
    pairs = []
    for number, line in enumerate(lines.splitlines(), 1):
        name, _, label = line.strip().rpartition(" ")
        if not line.strip():
            continue
        if not label.isdecimal() or name.strip() not in known:
            raise UserError(
                f"{file}, line {number}: '{line.strip()}' is not the name of a picture that is there, and "
                "its label; get the files again"
            )
        pairs.append((int(label), known[name.strip()]))
    return pairs


def _arranged(source: Source) -> list[Picture]:
    try:
        return arranged(picture_names(source), "")
    except ValueError as error:
        raise UserError(f"{source.path}: {error}") from None


def _label(source: Source, picture: Picture, classes: Sequence[str], aliases: Mapping[str, str]) -> int:
    name = picture.class_name.lower().replace(" ", "_").replace("-", "_")
    name = aliases.get(name, name)
    if name in classes:
        return list(classes).index(name)
    if name.isdecimal() and int(name) < len(classes):
        return int(name)
    raise UserError(
        f"{source.path} has an unknown class '{picture.class_name}'; {nearest(picture.class_name, classes)}"
    )


def _split(source: Source, members: list[tuple[int, str]], size: int) -> Split:
    if not members:
        raise UserError(f"{source.path} holds no pictures; get it again")
    members.sort()
    labels = np.array([label for label, _ in members], np.int64)
    return Split(decoded(source, [name for _, name in members], size), labels)
