"""Datasets that come as arrays in files: which files may hold a domain, and the one that is there."""

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


@dataclass(frozen=True)
class RawSplits:
    """Images as (N, H, W) or (N, H, W, 3), and labels, as files store them."""

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


@dataclass(frozen=True)
class Form:
    """One way in which a domain may lie on disk: glob patterns that must all match, and their reader."""

    patterns: tuple[str, ...]
    read: Callable[[Sequence[Path], int], TrainTest]
    """Takes the files, one a pattern, and the size."""


def arrays(*patterns: str, read: Callable[[Sequence[Path]], RawSplits]) -> Form:
    """A form whose files hold pixels; they are checked and scaled here."""

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
    """Domains that each lie in one of several known forms."""

    size: int = Field(default=32, ge=8, le=512)
    """Side of the square that images are scaled to."""
    limit: Limit = None

    folder: ClassVar[str]
    """Folder below the root in which the files are looked for first; after it comes the root itself."""
    forms: ClassVar[Mapping[str, tuple[Form, ...]]]
    """Domain → forms, the preferred one first."""
    downloads: ClassVar[tuple[str, ...]] = ()
    """Names of torchvision's datasets that hold the same files."""

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
        """A file or folder of a known name goes into the dataset's folder; another folder becomes it."""
        patterns = {
            p.rpartition("/")[2] for forms in self.forms.values() for form in forms for p in form.patterns
        }
        if any(fnmatch(path.name, pattern) for pattern in patterns):
            return Path(self.folder) / path.name
        if path.is_dir():
            return Path(self.folder)
        raise UserError(f"{path} has none of the names this dataset's files have; {self.origin}")

    def locate(self, root: Path | None, domain: str) -> tuple[Form, list[Path]]:
        """The form that is there and its files."""
        found, incomplete = self._found(root, domain)
        if found:
            return found
        raise UserError(f"domain '{domain}' is not below {root}{incomplete}; {self.origin}")

    def _found(self, root: Path | None, domain: str) -> tuple[tuple[Form, list[Path]] | None, str]:
        """The same, or None with the file that an otherwise present form lacks."""
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
