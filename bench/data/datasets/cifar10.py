"""CIFAR-10: 60,000 small photographs of ten kinds; official files, an .npz, or pictures."""

from functools import partial
from typing import ClassVar

from bench.data.array_files import ArrayFiles, Form, arrays
from bench.data.cifar import batches
from bench.data.formats import cifar_batch, cifar_binary, read_npz
from bench.data.picture_forms import class_folders

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
ARCHIVES = tuple(
    f"{name}{rest}"
    for name in ("cifar10", "cifar-10", "CIFAR10", "CIFAR-10")
    for rest in (".zip", "[!0]*.zip", ".tar*", "[!0]*.tar*")
)
TRAIN = tuple(f"data_batch_{i}" for i in range(1, 6))
_python = partial(batches, train=TRAIN, test="test_batch", parse=partial(cifar_batch, label_key="labels"))
_binary = partial(
    batches,
    train=tuple(f"{name}.bin" for name in TRAIN),
    test="test_batch.bin",
    parse=partial(cifar_binary, label_bytes=1),
)


class Cifar10(ArrayFiles):
    classes: ClassVar[tuple[str, ...]] = CLASSES
    counts: ClassVar[dict[str, tuple[int, int] | None]] = {"cifar10": (50000, 10000)}
    downloads: ClassVar[tuple[str, ...]] = ("CIFAR10",)
    folder: ClassVar[str] = "cifar10"
    forms: ClassVar[dict[str, tuple[Form, ...]]] = {
        "cifar10": (
            _python("cifar-10-batches-py"),
            _python("cifar-10-python.tar.gz"),
            _binary("cifar-10-batches-bin"),
            _binary("cifar-10-binary.tar.gz"),
            arrays("cifar10.npz", read=read_npz),
            arrays("cifar10_*.npz", read=read_npz),
            *class_folders(ARCHIVES, CLASSES, {"plane": "airplane", "car": "automobile"}),
        )
    }
    origin: ClassVar[str] = (
        "run `bench data fetch cifar10`, or put cifar-10-python.tar.gz or cifar-10-binary.tar.gz there, "
        "or pictures as cifar10/train/CLASS/*.png and cifar10/test/CLASS/*.png"
    )
