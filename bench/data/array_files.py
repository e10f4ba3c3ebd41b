"""Datasets that come as arrays in files: which files can hold a domain, and which of them exist."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from bench.data.base import DatasetSpec, Limit, Split, TrainTest
from bench.data.image_folders import required_root
from bench.data.images import scaled
from bench.data.sources import fingerprint, reading
from bench.errors import UserError

FOLDERS_OF_SPLITS = frozenset({"train", "test"})


@dataclass(frozen=True)
class RawSplits:
    """Images of shape (N, H, W) or (N, H, W, 3), and their labels, as stored in files."""

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


@dataclass(frozen=True)
class Form:
    """One way to store a domain on disk: glob patterns that must all match, and a function to read them."""

    patterns: tuple[str, ...]
    read: Callable[[Sequence[Path], int], TrainTest]
    """Takes the files, one per pattern, and the size."""


def arrays(*patterns: str, read: Callable[[Sequence[Path]], RawSplits]) -> Form:
    """A form whose files hold pixels, which are checked and scaled here."""

    def scaled_splits(paths: Sequence[Path], size: int) -> TrainTest:
        with reading(paths[0]):
            raw = read(paths)
            return TrainTest(
                _split(raw.x_train, raw.y_train, size),
                _split(raw.x_test, raw.y_test, size),
            )

    return Form(patterns, scaled_splits)


def _split(images: np.ndarray, labels: np.ndarray, size: int) -> Split:
    is_rgb = images.ndim == 4 and images.shape[3] == 3
    if images.dtype != np.uint8 or not (images.ndim == 3 or is_rgb):
        raise ValueError(f"images have shape {images.shape} and type {images.dtype}")
    if labels.shape != (len(images),):
        raise ValueError(f"{len(images)} images, but labels of shape {labels.shape}")
    return Split(scaled(images, size), labels.astype(np.int64))


class ArrayFiles(DatasetSpec):
    """A dataset whose domains are each stored in one of several known forms."""

    size: int = Field(default=32, ge=8, le=512)
    """Side of the square that images are scaled to."""
    limit: Limit = None

    folder: ClassVar[str]
    """Folder below the root that is searched first; the root itself is searched next."""
    forms: ClassVar[Mapping[str, tuple[Form, ...]]]
    """Domain → its forms, in order of preference."""
    downloads: ClassVar[tuple[str, ...]] = ()
    """Names of the torchvision datasets with the same files."""

    def fingerprint(self, root: Path | None) -> str:
        return fingerprint(path for domain in self.domain_names() for path in self.locate(root, domain)[1])

    def build(self, root: Path | None, domain: str) -> TrainTest:
        form, paths = self.locate(root, domain)
        splits = form.read(paths, self.size)
        for split in splits:
            if len(split) == 0 or split.y.min() < 0 or split.y.max() >= len(self.classes):
                raise UserError(
                    f"{paths[0]} has no images, or labels other than 0 to {len(self.classes) - 1}; "
                    "get the file again"
                )
        return TrainTest(*(split.thinned(self.limit) for split in splits))

    def present_domains(self, root: Path | None) -> tuple[str, ...]:
        return tuple(domain for domain in self.counts if self._found(root, domain)[0])

    def place_of(self, path: Path) -> Path:
        """A file or folder with a known name goes into the dataset's folder; any other folder becomes it."""
        files = [p.split("/") for forms in self.forms.values() for form in forms for p in form.patterns]
        patterns = {parts[0] for parts in files} - FOLDERS_OF_SPLITS | {parts[-1] for parts in files}
        if any(fnmatch(path.name, pattern) for pattern in patterns):
            return Path(self.folder) / path.name
        if path.is_dir():
            return Path(self.folder)
        raise UserError(f"{path} is not named like any file of this dataset; {self.origin}")

    def locate(self, root: Path | None, domain: str) -> tuple[Form, list[Path]]:
        """The form in which the domain exists, and its files."""
        found, incomplete = self._found(root, domain)
        if found:
            return found
        raise UserError(f"domain '{domain}' is not below {root}{incomplete}; {self.origin}")

    def _found(self, root: Path | None, domain: str) -> tuple[tuple[Form, list[Path]] | None, str]:
        """The form and its files, or None and the file that is missing from an incomplete form."""
        top = required_root(root, self.origin)
        incomplete = ""
        for place in (top / self.folder, top):
            for form in self.forms[domain]:
                matches = [min(place.glob(pattern), default=None) for pattern in form.patterns]
                if all(matches):
                    return (form, [match for match in matches if match]), ""
                if any(matches) and not incomplete:
                    missing = form.patterns[matches.index(None)]
                    incomplete = f" ({place / missing} is missing)"
        return None, incomplete
