"""Your own pictures as DOMAIN/CLASS/*.jpg or CLASS/*.jpg, in a folder, a zip or a tar.

In a suite: `dataset: {name: folder, path: my_pictures}`; in Python: `bench.data.from_folder("my_pictures")`.
Domains and classes are named after their folders and sorted by name (numbers by value). A class may be
missing from a domain. Folders named `train` and `test` (or `val`), above or below the domains, hold the
official split. In a domain without them, the pictures are put in order (by class, then by file name) and
the share `test` of them, spread evenly, is the test set: the same for every seed, as for PACS.
"""

from fractions import Fraction

import numpy as np
from pydantic import Field

from bench.data.base import Split, TrainTest
from bench.data.image_folders import picture_names
from bench.data.images import Fit, decoded
from bench.data.layouts import Picture, arranged, in_test
from bench.data.own import OwnData
from bench.data.sources import Source, open_source
from bench.errors import UserError


class Folder(OwnData):
    size: int = Field(default=32, ge=8, le=512)
    """Side of the square that pictures are scaled to."""
    fit: Fit = "stretch"
    """Stretch pictures to the square, or crop its middle out of them."""
    test: float = Field(default=0.3, gt=0, lt=1)
    """Share of the pictures that are test, in domains without folders named train and test."""

    def all_domains(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(picture.domain for picture in self._pictures(self._source())))

    def class_names(self, root: object = None) -> tuple[str, ...]:
        names = {picture.class_name for picture in self._pictures(self._source())}
        if len(names) < 2:
            raise UserError(f"{self.location()} has one class only, '{min(names)}'; two or more are needed")
        return tuple(sorted(names, key=int if all(map(str.isdecimal, names)) else None))

    def content_digest(self) -> str:
        source = self._source()
        return source.digest(picture_names(source))

    def build_domain(self, domain: str) -> TrainTest:
        source = self._source()
        number = {name: i for i, name in enumerate(self.class_names())}
        own = [picture for picture in self._pictures(source) if picture.domain == domain]
        own.sort(key=lambda picture: (number[picture.class_name], picture.name))
        y = np.array([number[picture.class_name] for picture in own], np.int64)
        marks = in_test([picture.split for picture in own])
        test = spread(len(own), self.test) if marks is None else np.array(marks)
        if test.all() or not test.any():
            lacking = "train" if test.all() else "test"
            raise UserError(f"domain '{domain}' in {source.path} has no {lacking} pictures; add some")
        x = decoded(source, [picture.name for picture in own], self.size, self.fit)
        return TrainTest(Split(x[~test], y[~test]), Split(x[test], y[test]))

    def _source(self) -> Source:
        return open_source(self.location())

    def _pictures(self, source: Source) -> list[Picture]:
        try:
            return arranged(picture_names(source), self.stem())
        except ValueError as error:
            raise UserError(f"{source.path}: {error}") from None


def spread(number: int, share: float) -> np.ndarray:
    """Marks number − int((1 − share)·number) positions, spread evenly; 0.3 gives the split of PACS."""
    rest = 1 - Fraction(str(share))
    whole = [int(position * rest) for position in range(number + 1)]
    return np.equal(np.diff(whole), 0)
