"""Your own arrays in an .npz file: images or vectors, of one domain or several.

In a suite: `dataset: {name: arrays, path: my_data.npz}`; in Python: `bench.data.from_arrays(...)`. The file
has the arrays `x_train`, `y_train`, `x_test` and `y_test`. Several domains are either four such arrays per
domain, named `DOMAIN/x_train` and so on, or two more arrays with the domain of each sample, `domain_train`
and `domain_test`. Images are bytes, or floats from 0 to 1, of shape (N, H, W), (N, H, W, 3) or (N, 3, H, W);
vectors are numbers of shape (N, D). Labels are integers or strings. An array `classes` names the labels
0, 1, …; without it, the classes are the labels that occur, sorted.
"""

import hashlib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from pydantic import Field

from bench.data.base import Split, TrainTest
from bench.data.formats import as_bytes
from bench.data.images import planes, scaled
from bench.data.own import OwnData
from bench.data.sources import reading
from bench.errors import UserError
from bench.records.safe_archives import refuse_zip_bomb

KEYS = ("x_train", "y_train", "x_test", "y_test")
EXPECTED = f"give it the arrays {', '.join(KEYS)}, or those of each domain as DOMAIN/x_train and so on"


class Arrays(OwnData):
    size: int | None = Field(default=None, ge=8, le=512, exclude_if=lambda size: size is None)
    """Side of the square that images are scaled to; None: they stay as they are."""

    def all_domains(self) -> tuple[str, ...]:
        with self._opened() as file:
            names = self._prefixes(file)
            if "domain_train" in file:
                names = [str(name) for name in sorted(set(file["domain_train"].tolist()))]
        if names == [""]:
            return (self.stem(),)
        for name in names:
            if not name or "/" in name or name.startswith("."):
                raise UserError(f"{self.path}: '{name}' cannot name a domain; use letters and digits")
        return tuple(names)

    def class_names(self, root: object = None) -> tuple[str, ...]:
        with self._opened() as file:
            if "classes" in file:
                return tuple(str(name) for name in file["classes"].tolist())
            return tuple(str(label) for label in self._labels_that_occur(file).tolist())

    def content_digest(self) -> str:
        with reading(self._file()), self._file().open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def build_domain(self, domain: str) -> TrainTest:
        path = self._file()
        with self._opened() as file:
            self._check_shapes(path, file)
            known = None if "classes" in file else self._labels_that_occur(file)
            names = file["classes"] if known is None else known
            splits = []
            for part in ("train", "test"):
                prefix = f"{domain}/" if f"{domain}/x_train" in file else ""
                x, y = file[f"{prefix}x_{part}"], file[f"{prefix}y_{part}"]
                if y.shape != (len(x),):
                    raise UserError(f"{path}: {len(x)} samples x_{part}, but labels of shape {y.shape}")
                if "domain_train" in file:
                    own = file[f"domain_{part}"].astype(str) == domain
                    x, y = x[own], y[own]
                if not len(x):
                    raise UserError(f"{path}: domain '{domain}' has no {part} samples; add some")
                splits.append(Split(self._inputs(x), _numbers(path, y, names, named=known is None)))
        return TrainTest(*splits)

    @contextmanager
    def _opened(self) -> Iterator[np.lib.npyio.NpzFile]:
        path = self._file()
        with reading(path):
            refuse_zip_bomb(path)
            with np.load(path, allow_pickle=False) as file:
                yield file

    def _file(self) -> Path:
        return self.location()

    def _prefixes(self, file: np.lib.npyio.NpzFile) -> list[str]:
        """`DOMAIN` for every domain with arrays of its own, or the empty string for arrays of all."""
        prefixes = sorted({key.rpartition("/")[0] for key in file if key.rpartition("/")[2] in KEYS})
        wanted = [f"{prefix}/{key}".lstrip("/") for prefix in prefixes or [""] for key in KEYS]
        if "domain_train" in file:
            wanted.append("domain_test")
        if missing := [key for key in wanted if key not in file]:
            raise UserError(f"{self.location()} lacks the array {missing[0]}; {EXPECTED}")
        return prefixes

    def _labels_that_occur(self, file: np.lib.npyio.NpzFile) -> np.ndarray:
        labels = [file[key] for key in file if key.rpartition("/")[2] in ("y_train", "y_test")]
        found = np.unique(np.concatenate(labels))
        if found.dtype.kind not in "biuU" or len(found) < 2:
            raise UserError(
                f"{self.location()}: labels must be integers or strings of two or more classes, but are of "
                f"type {found.dtype} with {len(found)} values"
            )
        return found

    def _check_shapes(self, path: Path, file: np.lib.npyio.NpzFile) -> None:
        shapes = {
            key: _shape(path, key)[1:] for key in file if key.rpartition("/")[2] in ("x_train", "x_test")
        }
        first = next(iter(shapes))
        for key, shape in shapes.items():
            if shape != shapes[first] and not (self.size and len(shape) > 1):
                raise UserError(
                    f"{path}: samples of {first} have shape {shapes[first]}, those of {key} {shape}; "
                    "make them alike, or set the option 'size' for images"
                )

    def _inputs(self, x: np.ndarray) -> np.ndarray:
        if x.ndim == 2:
            if self.size is not None:
                raise UserError(f"{self.path} holds vectors, which have no 'size'; remove the option")
            vectors = x.astype(np.float32)
            if not np.isfinite(vectors).all():
                raise ValueError("some values are not finite")
            return vectors
        if x.ndim == 4 and x.shape[1] in (1, 3) and x.shape[3] not in (1, 3):
            x = x.transpose(0, 2, 3, 1)
        images = x[..., 0] if x.ndim == 4 and x.shape[3] == 1 else x
        if images.ndim != 3 and not (images.ndim == 4 and images.shape[3] == 3):
            raise ValueError(f"samples of shape {x.shape[1:]} are neither images nor vectors")
        to_planes = planes if self.size is None else partial(scaled, size=self.size)
        return to_planes(as_bytes(images))


def _numbers(path: Path, labels: np.ndarray, names: np.ndarray, named: bool) -> np.ndarray:
    """Labels as positions among the classes."""
    if named and labels.dtype.kind in "iu":
        if labels.min() < 0 or labels.max() >= len(names):
            raise UserError(
                f"{path}: labels must be 0 to {len(names) - 1}, as there are {len(names)} classes"
            )
        return labels.astype(np.int64)
    position = {name: i for i, name in enumerate(names.tolist())}
    unknown = next((label for label in labels.tolist() if label not in position), None)
    if unknown is not None:
        raise UserError(f"{path}: label {unknown!r} is not among the classes; add it to the array 'classes'")
    return np.array([position[label] for label in labels.tolist()], np.int64)


def _shape(path: Path, key: str) -> tuple[int, ...]:
    """The shape of an array, from its header alone."""
    with zipfile.ZipFile(path) as archive, archive.open(f"{key}.npy") as member:
        version = np.lib.format.read_magic(member)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        return read(member)[0]
