"""Tiny ImageNet: photographs of 200 classes, 500 each; the val set is the test set."""

from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from bench.data.base import DatasetSpec, Limit, Split, TrainTest, spread_evenly
from bench.data.image_folders import find_source, picture_names, source_place
from bench.data.images import decoded
from bench.data.sources import Source, fingerprint, open_source
from bench.errors import UserError

STEMS = ("tiny_imagenet", "tiny-imagenet-200")
NUMBER_OF_CLASSES = 200


class TinyImagenet(DatasetSpec):
    size: int = Field(default=64, ge=8, le=512)
    """Side of the square that pictures are scaled to; 64 is their own."""
    limit: Limit = None

    classes: ClassVar[tuple[str, ...]] = ()
    counts: ClassVar[dict[str, tuple[int, int] | None]] = {"tiny_imagenet": (100000, 10000)}
    origin: ClassVar[str] = (
        "put tiny-imagenet-200.zip there (Stanford's course CS231n offers it), or its folder with "
        "train/ID/images/*.JPEG, val/images/*.JPEG, val/val_annotations.txt, wnids.txt and words.txt"
    )

    def fingerprint(self, root: Path | None) -> str:
        return fingerprint([find_source(root, STEMS, self.origin)])

    def place_of(self, path: Path) -> Path:
        return source_place(path, STEMS[0])

    def class_names(self, root: Path | None) -> tuple[str, ...]:
        """The first of the words that the dataset lists for each class."""
        source = self._source(root)
        words = dict(line.split("\t", 1) for line in _lines(source, "words.txt") if "\t" in line)
        return tuple(words.get(kind, kind).split(",")[0].strip() for kind in _kinds(source))

    def build(self, root: Path | None, domain: str) -> TrainTest:
        source = self._source(root)
        label = {kind: i for i, kind in enumerate(_kinds(source))}
        rows = (line.split("\t") for line in _lines(source, "val_annotations.txt"))
        kind_of_val = {file: kind for file, kind, *_ in rows}
        train: list[tuple[int, str]] = []
        test: list[tuple[int, str]] = []
        for name in picture_names(source):
            folders, file = name.split("/")[:-1], name.rpartition("/")[2]
            if "train" in folders:
                kind = next((folder for folder in folders if folder in label), "")
                part = train
            elif "val" in folders:
                kind = kind_of_val.get(file, "")
                part = test
            else:
                continue
            if kind not in label:
                raise UserError(
                    f"{name} in {source.path} belongs to none of the {len(label)} classes; {self.origin}"
                )
            part.append((label[kind], name))
        if not (train and test):
            raise UserError(
                f"{source.path} lacks pictures below {'val' if train else 'train'}/; {self.origin}"
            )
        return TrainTest(self._split(source, train), self._split(source, test))

    def _split(self, source: Source, members: list[tuple[int, str]]) -> Split:
        ordered = sorted(members)
        chosen = [ordered[position] for position in spread_evenly(len(ordered), self.limit)]
        labels, names = zip(*chosen, strict=True)
        return Split(decoded(source, names, self.size), np.array(labels, np.int64))

    def _source(self, root: Path | None) -> Source:
        return open_source(find_source(root, STEMS, self.origin))


def _kinds(source: Source) -> list[str]:
    kinds = sorted(_lines(source, "wnids.txt"))
    if len(set(kinds)) != NUMBER_OF_CLASSES:
        raise UserError(
            f"wnids.txt in {source.path} lists {len(set(kinds))} classes, not 200; get the dataset again"
        )
    return kinds


def _lines(source: Source, file: str) -> list[str]:
    name = next((name for name in source.names if name.rpartition("/")[2] == file), None)
    if name is None:
        raise UserError(f"{source.path} lacks {file}; get the dataset again")
    return [line.strip("\n\r") for line in source.read(name).decode().splitlines() if line.strip()]
