"""Datasets that come as DOMAIN/CLASS/picture, in a folder or an archive."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from bench.data.base import DatasetSpec, Limit, Split, TrainTest, spread_evenly
from bench.data.images import Fit, decoded
from bench.data.sources import ARCHIVE_SUFFIXES, Source, fingerprint, open_source
from bench.errors import UserError, nearest

PICTURE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp")


class ImageFolders(DatasetSpec):
    """Pictures by domain and class. In folder names, case is ignored; spaces and hyphens are underscores."""

    size: int = Field(default=32, ge=8, le=512)
    """Side of the square that pictures are scaled to."""
    # Omitted if it is the default, so that configurations without it keep their identity.
    fit: Fit = Field(default="stretch", exclude_if=lambda fit: fit == "stretch")
    """Stretch pictures to the square, or crop its middle out of them."""
    limit: Limit = None

    stems: ClassVar[tuple[str, ...]]
    """Names that the folder or archive may have below the root, without suffix."""
    aliases: ClassVar[Mapping[str, str]] = {}
    """Other spellings of classes and domains."""

    @abstractmethod
    def in_train(self, positions: np.ndarray) -> np.ndarray:
        """Which positions in a domain's order (by class, then by file name) are train; others are test."""

    def fingerprint(self, root: Path | None) -> str:
        return fingerprint([self.locate(root)])

    def locate(self, root: Path | None) -> Path:
        """The folder or archive of this dataset."""
        return find_source(root, self.stems, self.origin)

    def place_of(self, path: Path) -> Path:
        return source_place(path, self.stems[0])

    def build(self, root: Path | None, domain: str) -> TrainTest:
        source = open_source(self.locate(root))
        names, labels = self._pictures(source, domain)
        in_train = self.in_train(np.arange(len(names)))
        train, test = (
            positions[spread_evenly(len(positions), self.limit)]
            for positions in (np.nonzero(in_train)[0], np.nonzero(~in_train)[0])
        )
        chosen = np.concatenate([train, test])
        pixels = decoded(source, [names[position] for position in chosen], self.size, self.fit)
        return TrainTest(
            Split(pixels[: len(train)], labels[train]), Split(pixels[len(train) :], labels[test])
        )

    def _pictures(self, source: Source, domain: str) -> tuple[list[str], np.ndarray]:
        """A domain's files in order, and their labels."""
        found: list[tuple[int, str, str]] = []
        parents, strangers = set(), set()
        for name in picture_names(source):
            # Office-31 keeps its classes below DOMAIN/images.
            parts = [part for part in name.split("/") if part.lower() != "images"]
            *above, domain_folder, class_folder, file = ("", "", *parts)
            if self._canonical(domain_folder) != domain:
                continue
            parents.add("/".join(above))
            if (class_name := self._canonical(class_folder)) in self.classes:
                found.append((self.classes.index(class_name), file, name))
            else:
                strangers.add(class_folder)
        where = f"domain '{domain}' in {source.path}"
        if len(parents) > 1:
            raise UserError(f"{where} exists more than once; keep one of its folders")
        if strangers:
            stranger = min(strangers)
            raise UserError(f"{where} has an unknown class '{stranger}'; {nearest(stranger, self.classes)}")
        missing = set(range(len(self.classes))) - {label for label, _, _ in found}
        if missing:
            lacks = f"class '{self.classes[min(missing)]}'" if found else "pictures DOMAIN/CLASS/*.jpg"
            raise UserError(f"{where} lacks {lacks}; {self.origin}")
        found.sort()
        return [name for _, _, name in found], np.array([label for label, _, _ in found], np.int64)

    def _canonical(self, folder: str) -> str:
        name = folder.lower().replace(" ", "_").replace("-", "_")
        return self.aliases.get(name, name)


def picture_names(source: Source) -> list[str]:
    """The pictures of a source, without the hidden files that some systems add."""
    return [
        name
        for name in source.names
        if name.lower().endswith(PICTURE_SUFFIXES)
        and not any(part.startswith((".", "__MACOSX")) for part in name.split("/"))
    ]


def find_source(root: Path | None, stems: tuple[str, ...], origin: str) -> Path:
    """The first of these names that exists below the root, as a folder or an archive."""
    folder = required_root(root, origin)
    candidates = [folder / f"{stem}{suffix}" for stem in stems for suffix in ("", *ARCHIVE_SUFFIXES)]
    for candidate in candidates:
        if candidate.exists():
            return candidate
    raise UserError(f"found neither {stems[0]}/ nor {stems[0]}.zip below {folder}; {origin}")


def source_place(path: Path, stem: str) -> Path:
    """The name under which `find_source` looks for such a folder or archive."""
    suffix = next((suffix for suffix in ARCHIVE_SUFFIXES if path.name.lower().endswith(suffix)), "")
    if not (suffix or path.is_dir()):
        raise UserError(
            f"{path} is neither a folder nor an archive ({', '.join(ARCHIVE_SUFFIXES)}); give the path of one"
        )
    return Path(stem + suffix)


def required_root(root: Path | None, origin: str) -> Path:
    if root is None:
        raise UserError(
            f"this dataset needs files: give their folder by --data-root or BENCH_DATA_ROOT; {origin}"
        )
    if not root.is_dir():
        raise UserError(
            f"the data root {root} is not a folder; create it, or give another one by --data-root"
        )
    return root


def seven_tenths(positions: np.ndarray) -> np.ndarray:
    """Which positions are train: int(0.7·N) of the first N, spread evenly, for any N."""
    return (positions + 1) * 7 // 10 > positions * 7 // 10
