"""Where the real data is, and small files in the forms that users have."""

import io
import os
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bench.data.base import Dataset, Split
from tests.kit.places import REPOSITORY


def real_data(*files: str) -> Path:
    """The folder with the real data, or a skip that says what is missing."""
    root = Path(os.environ.get("BENCH_DATA_ROOT") or REPOSITORY.parent / "shared" / "data")
    for file in files:
        if not (root / file).exists():
            pytest.skip(f"real data {file} is not at {root}; set BENCH_DATA_ROOT")
    return root


def picture(shade: int, side: int = 8, format: str = "PNG") -> bytes:
    """A square of one grey."""
    buffer = io.BytesIO()
    Image.new("RGB", (side, side), (shade, shade, shade)).save(buffer, format)
    return buffer.getvalue()


def write_zip(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def write_tar(path: Path, files: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def write_folder(path: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def domain_pictures(domains: Iterable[str], classes: Iterable[str], each: int) -> dict[str, bytes]:
    """`each` pictures DOMAIN/CLASS/NUMBER.png, every one of another shade within its class."""
    return {
        f"{domain}/{name}/{number:03}.png": picture(number)
        for domain in domains
        for name in classes
        for number in range(each)
    }


def labelled(name: str, train: Mapping[str, Iterable[int]], test: Mapping[str, Iterable[int]]) -> Dataset:
    """A dataset with given labels, whose inputs say where they come from."""

    def split(labels: Iterable[int]) -> Split:
        y = np.array(list(labels), np.int64)
        return Split(np.arange(len(y), dtype=np.float32)[:, None], y)

    number = 1 + max(max(labels) for labels in train.values())
    return Dataset(
        name,
        tuple(f"class{i}" for i in range(number)),
        {domain: split(labels) for domain, labels in train.items()},
        {domain: split(labels) for domain, labels in test.items()},
        "none",
    )


NOISE_SIZES = {"left": (60, 21), "right": (75, 8)}
"""Domain → train and test pictures of `noise`."""


def noise(seed: int = 0) -> Dataset:
    """Small pictures of nothing in two domains."""
    rng = np.random.default_rng(seed)

    def split(number: int) -> Split:
        return Split(rng.integers(0, 256, (number, 3, 16, 16), np.uint8), rng.integers(0, 3, number))

    train = {domain: split(sizes[0]) for domain, sizes in NOISE_SIZES.items()}
    test = {domain: split(sizes[1]) for domain, sizes in NOISE_SIZES.items()}
    return Dataset("noise", ("a", "b", "c"), train, test, f"sum{seed}")
