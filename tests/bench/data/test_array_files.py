import bz2
import gzip
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.data import dataset_spec, load_dataset
from bench.data.base import Dataset
from bench.errors import UserError
from tests.kit.data import picture, real_data, write_folder, write_tar, write_zip

RNG = np.random.default_rng(0)


def digits(tmp_path: Path, *domains: str) -> Dataset:
    return load_dataset("digits", {"domains": domains}, tmp_path, tmp_path / "cache")


def test_real_digits(tmp_path: Path) -> None:
    files = ("usps_full.npz", "svhn_cropped32_subset_6000_2000.npz", "mnistm_subset_6000_2000.npz")
    root = real_data(*files, "syn_roy_sample60.zip")
    options = {"domains": ["usps", "svhn", "syn", "mnistm"]}
    dataset = load_dataset("digits", options, root, tmp_path)
    assert dataset.domains == ("usps", "svhn", "syn", "mnistm")
    assert [len(split) for split in dataset.train.values()] == [7291, 6000, 42, 6000]
    assert [len(split) for split in dataset.test.values()] == [2007, 2000, 18, 2000]
    with np.load(root / files[1]) as raw:
        assert (dataset.test["svhn"].x == raw["x_test"].transpose(0, 3, 1, 2)).all()
        assert (dataset.test["svhn"].y == raw["y_test"]).all()
    with np.load(root / files[0]) as raw:
        # Enlarged to twice the size, the mean over an image stays.
        means = dataset.train["usps"].x.mean((1, 2, 3)) / 255
        assert np.abs(means - raw["x_train"].mean((1, 2))).max() < 0.02
    assert np.bincount(dataset.train["syn"].y).sum() == 42
    assert np.unique(dataset.test["syn"].y).tolist() == list(range(10))


def test_real_mnist_is_complete(tmp_path: Path) -> None:
    root = real_data("mnist_full.npz")
    dataset = load_dataset("digits", {"domains": ["mnist"], "size": 28}, root, tmp_path)
    with np.load(root / "mnist_full.npz") as raw:
        for channel in range(3):
            assert (dataset.test["mnist"].x[:, channel] == raw["x_test"]).all()
        assert (dataset.train["mnist"].y == raw["y_train"]).all()
    assert len(dataset.train["mnist"]) == 60000


def test_a_limit_takes_images_from_all_over(tmp_path: Path) -> None:
    y = np.repeat(np.arange(10), 3)
    x = np.arange(30, dtype=np.uint8)[:, None, None] * np.ones((32, 32), np.uint8)
    np.savez(tmp_path / "mnist.npz", x_train=x, y_train=y, x_test=x[:5], y_test=y[:5])
    options = {"domains": ["mnist"], "limit": 10}
    dataset = load_dataset("digits", options, tmp_path, tmp_path / "cache")
    assert dataset.train["mnist"].y.tolist() == list(range(10))
    assert dataset.train["mnist"].x[:, 0, 0, 0].tolist() == list(range(0, 30, 3))
    assert len(dataset.test["mnist"]) == 5
    assert "limit" not in dataset_spec("digits", {}).model_dump()


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def mnist_files(compressed: bool) -> dict[str, bytes]:
    arrays = {
        "train-images-idx3-ubyte": RNG.integers(0, 256, (6, 32, 32), np.uint8),
        "train-labels-idx1-ubyte": np.array([5, 0, 4, 1, 9, 2], np.uint8),
        "t10k-images-idx3-ubyte": RNG.integers(0, 256, (3, 32, 32), np.uint8),
        "t10k-labels-idx1-ubyte": np.array([7, 2, 1], np.uint8),
    }
    files = {name: idx(array) for name, array in arrays.items()}
    return {f"{name}.gz": gzip.compress(data) for name, data in files.items()} if compressed else files


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("folder", ["digits/MNIST/raw", "MNIST/raw", "digits", "."])
def test_mnist_files(compressed: bool, folder: str, tmp_path: Path) -> None:
    files = mnist_files(compressed)
    write_folder(tmp_path / folder, files)
    dataset = digits(tmp_path, "mnist")
    assert dataset.train["mnist"].y.tolist() == [5, 0, 4, 1, 9, 2]
    assert dataset.test["mnist"].y.tolist() == [7, 2, 1]
    raw = next(data for name, data in files.items() if name.startswith("t10k-images"))
    pixels = (gzip.decompress(raw) if compressed else raw)[16:]
    assert dataset.test["mnist"].x[:, 0].tobytes() == pixels


def test_usps_files(tmp_path: Path) -> None:
    values = RNG.uniform(-1, 1, (4, 256)).round(3)
    lines = [
        f"{label} " + " ".join(f"{i}:{v}" for i, v in enumerate(row, 1))
        for label, row in zip((1, 10, 5, 2), values, strict=True)
    ]
    for name, part in (("usps.bz2", lines[:3]), ("usps.t.bz2", lines[3:])):
        (tmp_path / name).write_bytes(bz2.compress("\n".join(part).encode()))
    dataset = load_dataset("digits", {"domains": ["usps"], "size": 16}, tmp_path, tmp_path / "cache")
    assert dataset.train["usps"].y.tolist() == [0, 9, 4]
    expected = (values[:3].reshape(3, 16, 16) + 1) / 2 * 255
    assert np.abs(dataset.train["usps"].x[:, 1] - expected).max() <= 0.5


@pytest.mark.parametrize(("domain", "prefix"), [("svhn", ""), ("syn", "synth_")])
def test_mat_files(domain: str, prefix: str, tmp_path: Path) -> None:
    from scipy.io import savemat

    images = RNG.integers(0, 256, (32, 32, 3, 5), np.uint8)
    for part in ("train", "test"):
        savemat(tmp_path / f"{prefix}{part}_32x32.mat", {"X": images, "y": [[1], [10], [9], [2], [3]]})
    split = digits(tmp_path, domain).train[domain]
    assert split.y.tolist() == [1, 0, 9, 2, 3]
    assert (split.x[4] == images[:, :, :, 4].transpose(2, 0, 1)).all()


def test_synthetic_digits_with_their_own_split(tmp_path: Path) -> None:
    files = {f"set/imgs_train/{d}/{i}.png": picture(10 * d + i) for d in range(10) for i in range(2)}
    files |= {f"set/imgs_valid/{d}/0.png": picture(100 + d) for d in range(10)}
    write_zip(tmp_path / "syn.zip", files)
    dataset = digits(tmp_path, "syn")
    assert len(dataset.train["syn"]) == 20
    assert dataset.test["syn"].x[:, 0, 0, 0].tolist() == [100 + d for d in range(10)]


def test_missing_and_damaged_digit_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"domain 'syn' is not below .*option 'domains'"):
        digits(tmp_path, "syn")
    files = mnist_files(compressed=True)
    write_folder(tmp_path / "digits", dict(list(files.items())[:3]))
    with pytest.raises(UserError, match=r"'mnist' is not below .*t10k-labels.* is missing"):
        digits(tmp_path, "mnist")
    write_folder(tmp_path / "digits", files)
    images = tmp_path / "digits" / "t10k-images-idx3-ubyte.gz"
    images.write_bytes(images.read_bytes()[:-100])
    with pytest.raises(UserError, match=r"cannot read .*t10k-images-idx3-ubyte.gz"):
        digits(tmp_path, "mnist")
    (tmp_path / "svhn_x.npz").write_bytes(b"PK nonsense")
    with pytest.raises(UserError, match=r"cannot read .*svhn_x.npz"):
        digits(tmp_path, "svhn")
    (tmp_path / "train_32x32.mat").write_bytes(b"nonsense" * 40)
    (tmp_path / "test_32x32.mat").write_bytes(b"nonsense" * 40)
    with pytest.raises(UserError, match=r"cannot read .*train_32x32.mat"):
        digits(tmp_path, "svhn")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_test": np.array([3, 11])}, "labels other than 0 to 9"),
        ({"y_test": np.array([3])}, "labels of shape"),
        ({"x_test": np.zeros((2, 8, 8), np.float32) + 7}, "numbers from 0 to 1"),
        ({"x_test": np.zeros((2, 8, 8, 2), np.uint8)}, "shape"),
        ({"x_test": np.array([{}, {}], object)}, "cannot read"),
    ],
)
def test_arrays_are_checked(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    good = np.zeros((2, 8, 8), np.uint8)
    arrays: dict[str, Any] = {
        "x_train": good,
        "y_train": np.array([1, 2]),
        "x_test": good,
        "y_test": np.array([1, 2]),
    }
    np.savez(tmp_path / "mnist.npz", **(arrays | change))
    with pytest.raises(UserError) as caught:
        digits(tmp_path, "mnist")
    assert message in str(caught.value) and "mnist.npz" in str(caught.value)


def test_real_cifar10_subset(tmp_path: Path) -> None:
    root = real_data("cifar10_subset_4000_1000.npz")
    dataset = load_dataset("cifar10", {}, root, tmp_path)
    assert np.bincount(dataset.train["cifar10"].y).tolist() == [400] * 10
    assert dataset.test["cifar10"].x.shape == (1000, 3, 32, 32)


CIFAR = RNG.integers(0, 256, (12, 3072), np.uint8)


def cifar_files(name: str, form: str, protocol: int = 2) -> dict[str, bytes]:
    """Twelve images: two a batch of CIFAR-10, or ten for train and two for test of CIFAR-100."""
    labels = np.arange(12, dtype=np.uint8) % 10
    if name == "cifar10":
        batches = {f"data_batch_{i}": slice(2 * i - 2, 2 * i) for i in range(1, 6)} | {
            "test_batch": slice(10, 12)
        }
    else:
        batches = {"train": slice(0, 10), "test": slice(10, 12)}
    files = {}
    for batch, rows in batches.items():
        if form == "binary":
            coarse = [] if name == "cifar10" else [labels[rows, None] + 7]
            files[f"{batch}.bin"] = np.hstack([*coarse, labels[rows, None], CIFAR[rows]]).tobytes()
        else:
            key = "labels" if name == "cifar10" else "fine_labels"
            content = {"data": CIFAR[rows], key: labels[rows].tolist(), "batch_label": "x"}
            files[batch] = pickle.dumps(content, protocol=protocol)
    return files


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
@pytest.mark.parametrize("form", ["python", "binary"])
@pytest.mark.parametrize("archived", [True, False])
def test_cifar_files(name: str, form: str, archived: bool, tmp_path: Path) -> None:
    dashed = name.replace("cifar", "cifar-")
    folder = f"{dashed}-batches-{form.replace('python', 'py').replace('binary', 'bin')}"
    folder = folder if name == "cifar10" else f"{dashed}-{form}"
    files = cifar_files(name, form)
    if archived:
        members = {f"{folder}/{file}": data for file, data in files.items()}
        write_tar(tmp_path / f"{dashed}-{form}.tar.gz", members)
    else:
        write_folder(tmp_path / name / folder, files)
    dataset = load_dataset(name, {}, tmp_path, tmp_path / "cache")
    assert (dataset.train[name].x == CIFAR[:10].reshape(-1, 3, 32, 32)).all()
    assert (dataset.test[name].x == CIFAR[10:].reshape(-1, 3, 32, 32)).all()
    assert dataset.train[name].y.tolist() == list(range(10))
    assert dataset.test[name].y.tolist() == [0, 1]


@pytest.mark.parametrize("protocol", [0, 2, 3, 4])
def test_cifar_batches_of_any_python(protocol: int, tmp_path: Path) -> None:
    write_folder(tmp_path / "cifar-10-batches-py", cifar_files("cifar10", "python", protocol))
    dataset = load_dataset("cifar10", {}, tmp_path, tmp_path / "cache")
    assert (dataset.test["cifar10"].x == CIFAR[10:].reshape(-1, 3, 32, 32)).all()


class Attack:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.target),)


def test_pickles_execute_nothing(tmp_path: Path) -> None:
    files = cifar_files("cifar10", "python")
    files["data_batch_3"] = pickle.dumps({"data": Attack(tmp_path / "broken_in"), "labels": [1]}, protocol=2)
    write_folder(tmp_path / "cifar-10-batches-py", files)
    with pytest.raises(UserError, match=r"cannot read data_batch_3 in .*it refers to \w+.mkdir"):
        load_dataset("cifar10", {}, tmp_path, tmp_path / "cache")
    assert not (tmp_path / "broken_in").exists()
    np.savez(tmp_path / "mnist.npz", x_train=np.array([Attack(tmp_path / "broken_in")], object))
    with pytest.raises(UserError, match=r"cannot read .*mnist.npz"):
        digits(tmp_path, "mnist")
    assert not (tmp_path / "broken_in").exists()


def test_incomplete_cifar(tmp_path: Path) -> None:
    files = cifar_files("cifar10", "python")
    del files["data_batch_4"]
    write_folder(tmp_path / "cifar-10-batches-py", files)
    with pytest.raises(UserError, match="lacks the file data_batch_4"):
        load_dataset("cifar10", {}, tmp_path, tmp_path / "cache")
