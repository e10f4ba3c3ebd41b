"""A user's own arrays as a dataset: domains, kinds of samples, labels and identity."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.data import from_arrays, from_npz, load_dataset
from bench.data.base import Dataset
from bench.errors import UserError
from tests.kit.data import real_data

RNG = np.random.default_rng(0)
X, Y = RNG.integers(0, 256, (12, 16, 16, 3), np.uint8), np.arange(12) % 3
XT, YT = RNG.integers(0, 256, (6, 16, 16, 3), np.uint8), np.arange(6) % 3
FOUR = {"x_train": X, "y_train": Y, "x_test": XT, "y_test": YT}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def load(path: Path, arrays: dict[str, np.ndarray], **options: object) -> Dataset:
    np.savez(path, allow_pickle=True, **arrays)
    return load_dataset("arrays", {"path": str(path), **options})


def test_one_domain_is_named_after_the_file(tmp_path: Path) -> None:
    dataset = load(tmp_path / "mine.npz", FOUR)
    assert dataset.domains == ("mine",)
    assert dataset.classes == ("0", "1", "2")
    assert (dataset.train["mine"].x == X.transpose(0, 3, 1, 2)).all()
    assert (dataset.test["mine"].y == YT).all()


def test_domains_as_prefixes_or_as_an_array_are_the_same(tmp_path: Path) -> None:
    where, where_test = np.array(["b", "a"] * 6), np.array(["a", "b"] * 3)
    named = load(tmp_path / "named.npz", {**FOUR, "domain_train": where, "domain_test": where_test})
    prefixed = {
        f"{domain}/{kind}_{part}": array[own == domain]
        for domain in "ba"
        for part, own in (("train", where), ("test", where_test))
        for kind, array in (("x", FOUR[f"x_{part}"]), ("y", FOUR[f"y_{part}"]))
    }
    separate = load(tmp_path / "separate.npz", prefixed)
    assert named.domains == separate.domains == ("a", "b")
    assert named.checksum == separate.checksum
    assert (named.train["b"].x == X[::2].transpose(0, 3, 1, 2)).all()


@pytest.mark.parametrize(
    ("train", "expected"),
    [
        (X[..., 0], np.repeat(X[:, None, :, :, 0], 3, axis=1)),
        (X[..., :1], np.repeat(X[:, None, :, :, 0], 3, axis=1)),
        (X.transpose(0, 3, 1, 2), X.transpose(0, 3, 1, 2)),
        (X / 255.0, X.transpose(0, 3, 1, 2)),
        (X[:, :10], X[:, :10].transpose(0, 3, 1, 2)),
        (X.reshape(12, -1), X.reshape(12, -1).astype(np.float32)),
        (RNG.normal(size=(12, 5)), None),
    ],
    ids=["grey", "one channel", "channels first", "floats", "not square", "bytes as vectors", "vectors"],
)
def test_kinds_of_samples(train: np.ndarray, expected: np.ndarray | None, tmp_path: Path) -> None:
    dataset = load(tmp_path / "mine.npz", {**FOUR, "x_train": train, "x_test": train[:6]})
    found = dataset.train["mine"].x
    expected = train.astype(np.float32) if expected is None else expected
    assert found.dtype == expected.dtype
    assert (found == expected).all()


def test_size_scales_images(tmp_path: Path) -> None:
    dataset = load(tmp_path / "mine.npz", {**FOUR, "x_test": XT[:, :12, :10]}, size=8)
    assert dataset.train["mine"].x.shape == (12, 3, 8, 8)
    assert dataset.test["mine"].x.shape == (6, 3, 8, 8)


def test_labels_may_have_gaps_or_be_words(tmp_path: Path) -> None:
    gaps = load(tmp_path / "gaps.npz", {**FOUR, "y_train": Y * 2 + 1, "y_test": YT * 2 + 1})
    assert gaps.classes == ("1", "3", "5")
    assert (gaps.train["gaps"].y == Y).all()
    words = np.array(["cat", "ant", "bee"])
    named = load(tmp_path / "words.npz", {**FOUR, "y_train": words[Y], "y_test": words[YT]})
    assert named.classes == ("ant", "bee", "cat")
    assert named.train["words"].y[:3].tolist() == [2, 0, 1]
    listed = load(tmp_path / "listed.npz", {**FOUR, "classes": words})
    assert listed.classes == ("cat", "ant", "bee")
    assert (listed.train["listed"].y == Y).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_test": None}, "lacks the array y_test"),
        ({"y_train": Y[:5]}, "12 samples x_train, but labels of shape"),
        ({"classes": np.array(["a", "b"])}, "labels must be 0 to 1, as there are 2 classes"),
        ({"y_train": Y + 0.5}, "labels must be integers or strings"),
        ({"y_train": Y * 0, "y_test": YT * 0}, "two or more classes"),
        ({"x_test": XT[:, :8]}, r"x_train have shape \(16, 16, 3\), those of x_test \(8, 16, 3\)"),
        ({"x_train": X * 1.0, "x_test": XT * 1.0}, "neither bytes nor numbers from 0 to 1"),
        ({"domain_train": np.array(["a"] * 12)}, "lacks the array domain_test"),
        ({"domain_train": np.array(["a/b"] * 12), "domain_test": np.array(["a/b"] * 6)}, "cannot name"),
        (
            {"domain_train": np.array(["a", "b"] * 6), "domain_test": np.array(["a"] * 6)},
            "'b' has no test samples",
        ),
        ({"x_train": np.full((12, 4), np.nan), "x_test": np.zeros((6, 4))}, "not finite"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    arrays = {key: array for key, array in (FOUR | change).items() if array is not None}
    with pytest.raises(UserError, match=message):
        load(tmp_path / "mine.npz", arrays)


def test_from_arrays_writes_the_same_file_for_the_same_arrays(own_cache: Path) -> None:
    choice = from_arrays(X, Y, XT, YT, classes=["a", "b", "c"])
    again = from_arrays(X.copy(), Y.tolist(), XT, YT, classes=("a", "b", "c"))
    assert again == choice
    (file,) = (own_cache / "arrays").iterdir()
    content = file.read_bytes()
    file.unlink()
    from_arrays(X, Y, XT, YT, classes=["a", "b", "c"])
    assert file.read_bytes() == content  # a cell's identity has the digest of the file
    assert not Path(choice.options["path"]).is_absolute()  # the same cell on every machine
    assert from_arrays(X, Y, XT, YT, classes=["a", "b", "d"]) != choice
    config = choice.as_config()
    dataset = load_dataset(config.pop("name"), config)
    assert (dataset.domains, dataset.classes) == (("arrays",), ("a", "b", "c"))


def test_from_arrays_with_domains() -> None:
    choice = from_arrays(X, Y, XT, YT, domain_train=["u", "v"] * 6, domain_test=["u", "v"] * 3, domains=["v"])
    dataset = load_dataset(choice.name, choice.options)
    assert dataset.domains == ("v",)
    assert (dataset.test["v"].y == YT[1::2]).all()
    with pytest.raises(UserError, match="both 'domain_train' and 'domain_test'"):
        from_arrays(X, Y, XT, YT, domain_train=["u", "v"] * 6)
    with pytest.raises(UserError, match="x_train is not an array"):
        from_arrays(np.array([object()]), Y, XT, YT)


def test_real_arrays() -> None:
    root = real_data("cifar100_subset_10000_2000.npz")
    choice = from_npz(root / "cifar100_subset_10000_2000.npz", limit=500)
    dataset = load_dataset(choice.name, choice.options)
    assert dataset.classes[:3] == ("apple", "aquarium_fish", "baby")
    assert dataset.train["cifar100_subset_10000_2000"].x.shape == (500, 3, 32, 32)


def test_bench_data_is_light_to_import() -> None:
    code = "import sys, bench.data; print({'numpy', 'torch', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
