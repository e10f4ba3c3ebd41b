"""Readers of array files; none of them executes code from a file."""

import bz2
import gzip
import io
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.data.array_files import RawSplits
from bench.data.sources import reading
from bench.records.safe_archives import refuse_zip_bomb, unpacked


def read_npz(paths: Sequence[Path]) -> RawSplits:
    """x_train, y_train, x_test, y_test; images as uint8, or as floats in [0, 1]."""
    refuse_zip_bomb(paths[0])
    with np.load(paths[0], allow_pickle=False) as file:
        x_train, y_train, x_test, y_test = (file[key] for key in ("x_train", "y_train", "x_test", "y_test"))
    return RawSplits(as_bytes(x_train), y_train, as_bytes(x_test), y_test)


def read_idx(paths: Sequence[Path]) -> RawSplits:
    """MNIST's own files: train images, train labels, test images, test labels; plain or .gz."""
    return RawSplits(*(_idx(path) for path in paths))


def _idx(path: Path) -> np.ndarray:
    """Two zero bytes, the type (8: uint8), the number of axes, their lengths, the values."""
    with reading(path), gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        data = unpacked(file, path)
        if data[:3] != b"\x00\x00\x08":
            raise ValueError("not an IDX file of bytes")
        axes = data[3]
        shape = tuple(int(length) for length in np.frombuffer(data, ">u4", count=axes, offset=4))
        return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def read_usps(paths: Sequence[Path]) -> RawSplits:
    """LIBSVM text in .bz2, train and test: labels 1 to 10, 256 values in [-1, 1]."""
    (x_train, y_train), (x_test, y_test) = (_libsvm(path) for path in paths)
    return RawSplits(x_train, y_train, x_test, y_test)


def _libsvm(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with reading(path), bz2.open(path) as file:
        rows = [line.split() for line in unpacked(file, path).decode("ascii").splitlines() if line.strip()]
        labels = np.array([float(row[0]) for row in rows]).astype(np.int64) - 1
        values = np.array([[float(pair.partition(":")[2]) for pair in row[1:]] for row in rows])
        return as_bytes((values.reshape(-1, 16, 16) + 1) / 2), labels


def read_mat(paths: Sequence[Path]) -> RawSplits:
    """SVHN's own files, train and test: X (32, 32, 3, N), y with 10 for zero."""
    from scipy.io import loadmat

    splits = []
    for path in paths:
        with reading(path):
            file = loadmat(path, variable_names=["X", "y"])
            splits += [np.ascontiguousarray(file["X"].transpose(3, 0, 1, 2)), file["y"].ravel() % 10]
    return RawSplits(*splits)


def as_bytes(images: np.ndarray) -> np.ndarray:
    """Images as bytes, from bytes or from floats in [0, 1]."""
    if images.dtype == np.uint8:
        return images
    if not (np.issubdtype(images.dtype, np.floating) and images.min() >= 0 and images.max() <= 1):
        raise ValueError("images are neither bytes nor numbers from 0 to 1")
    rounded: np.ndarray = np.rint(images * 255).astype(np.uint8)
    return rounded


def cifar_binary(data: bytes, label_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """Records of label bytes (the last one is the class) and 3072 pixels."""
    records = np.frombuffer(data, np.uint8).reshape(-1, label_bytes + 3072)
    return _planes(records[:, label_bytes:]), records[:, label_bytes - 1].astype(np.int64)


def cifar_batch(data: bytes, label_key: str) -> tuple[np.ndarray, np.ndarray]:
    """A pickled dictionary of `data` and labels."""
    batch = _ArrayUnpickler(io.BytesIO(data), encoding="latin1").load()
    batch = {key.decode() if isinstance(key, bytes) else key: value for key, value in batch.items()}
    return _planes(np.asarray(batch["data"], np.uint8)), np.asarray(batch[label_key], np.int64)


def _planes(rows: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


class _ArrayUnpickler(pickle.Unpickler):
    """Accepts plain values and numpy arrays; any other name in the file is refused before it is imported."""

    def find_class(self, module: str, name: str) -> Any:
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name == "_reconstruct":
            return _empty_array
        if module == "numpy" and name == "ndarray":
            return np.ndarray
        if module == "numpy" and name == "dtype":
            return np.dtype
        if module == "_codecs" and name == "encode":  # how Python 3 writes bytes in old protocols
            return _latin1
        raise pickle.UnpicklingError(f"it refers to {module}.{name}, which no file of arrays does")


def _empty_array(_subtype: Any, _shape: Any, _type: Any) -> np.ndarray:
    """What numpy's own function gives; the file's state then fills it."""
    return np.ndarray.__new__(np.ndarray, (0,), np.int8)


def _latin1(text: str, _encoding: str = "latin1") -> bytes:
    return text.encode("latin1")
