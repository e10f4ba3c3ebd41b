"""Digits: MNIST, USPS, SVHN and Synthetic Digits (and MNIST-M), with their official test sets.

Synthetic Digits come as the two .mat files or as pictures DIGIT/*.jpg in a folder or archive, below folders
for train and test if there are any; otherwise int(0.7·N) of the N pictures are train, spread evenly. MNIST-M
comes as an .npz or as the official pictures with their lists of labels. If a domain is missing, the option
`domains` selects the others.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, Field

from bench.data.array_files import ArrayFiles, Form, arrays
from bench.data.base import Split, TrainTest, distinct
from bench.data.formats import read_idx, read_mat, read_npz, read_usps
from bench.data.image_folders import picture_names, seven_tenths
from bench.data.images import decoded
from bench.data.picture_forms import listed_labels
from bench.data.sources import open_source
from bench.errors import UserError

TEST_FOLDERS = {"test", "valid", "val", "imgs_valid", "imgs_test"}


def _digit_pictures(paths: Sequence[Path], size: int) -> TrainTest:
    """Pictures …/DIGIT/name.jpg, in order of digit and name."""
    source = open_source(paths[0])
    found = []
    for name in picture_names(source):
        *above, folder, _ = ("", *name.split("/"))
        if not (len(folder) == 1 and folder.isdecimal()):
            raise UserError(
                f"{name} in {source.path} is in no folder 0 to 9; arrange the pictures as DIGIT/*.jpg"
            )
        found.append((int(folder), name, bool(TEST_FOLDERS.intersection(above))))
    if not found:
        raise UserError(f"{source.path} holds no pictures; arrange them as DIGIT/*.jpg")
    labels, names, in_test = zip(*sorted(found), strict=True)
    pixels, y = decoded(source, names, size), np.array(labels, np.int64)
    train = ~np.array(in_test) if any(in_test) else seven_tenths(np.arange(len(names)))
    return TrainTest(Split(pixels[train], y[train]), Split(pixels[~train], y[~train]))


Domain = Literal["mnist", "usps", "svhn", "syn", "mnistm"]
MNIST_FILES = tuple(
    f"{part}-{kind}" for part in ("train", "t10k") for kind in ("images?idx3-ubyte*", "labels?idx1-ubyte*")
)


class Digits(ArrayFiles):
    domains: Annotated[tuple[Domain, ...], AfterValidator(distinct)] = Field(
        default=("mnist", "usps", "svhn", "syn"), min_length=1
    )

    classes: ClassVar[tuple[str, ...]] = tuple("0123456789")
    counts: ClassVar[dict[str, tuple[int, int] | None]] = {
        "mnist": (60000, 10000),
        "usps": (7291, 2007),
        "svhn": (73257, 26032),
        "syn": None,
        "mnistm": (59001, 9001),
    }
    downloads: ClassVar[tuple[str, ...]] = ("MNIST", "USPS", "SVHN")
    folder: ClassVar[str] = "digits"
    forms: ClassVar[dict[str, tuple[Form, ...]]] = {
        "mnist": (
            arrays(*(f"MNIST/raw/{file}" for file in MNIST_FILES), read=read_idx),
            arrays(*MNIST_FILES, read=read_idx),
            arrays("mnist_full.npz", read=read_npz),
            arrays("mnist.npz", read=read_npz),
        ),
        "usps": (
            arrays("usps.bz2", "usps.t.bz2", read=read_usps),
            arrays("usps*.npz", read=read_npz),
        ),
        "svhn": (
            arrays("train_32x32.mat", "test_32x32.mat", read=read_mat),
            arrays("svhn*.npz", read=read_npz),
        ),
        "syn": (
            arrays("synth_train_32x32.mat", "synth_test_32x32.mat", read=read_mat),
            arrays("syn*.npz", read=read_npz),
            *(
                Form((pattern,), _digit_pictures)
                for pattern in ("syn", "syn*.zip", "syn*.tar*", "synthetic_digits")
            ),
        ),
        "mnistm": (
            arrays("mnistm*.npz", read=read_npz),
            *listed_labels(
                "mnist_m",
                ("mnist_m*.tar*", "mnist_m*.tgz", "mnist_m*.zip"),
                {"train": "mnist_m_train", "test": "mnist_m_test"},
            ),
        ),
    }
    origin: ClassVar[str] = (
        "run `bench data fetch digits` for mnist, usps and svhn; put Synthetic Digits into digits/ as "
        "synth_train_32x32.mat and synth_test_32x32.mat, or as syn/DIGIT/*.jpg or syn.zip, and MNIST-M as "
        "mnist_m.tar.gz or its folder; or choose the domains you have by the dataset's option 'domains'"
    )

    def domain_names(self) -> tuple[str, ...]:
        return self.domains
