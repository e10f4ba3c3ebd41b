"""Office-Caltech: ten kinds of objects in photographs of four domains; DOMAIN/CLASS/*.jpg.

A domain's pictures are numbered in order (by class, then by file name); of each ten, the first eight are
train (position mod 10 ≤ 7) and two are test: 224, 190, 58 and 30 of them. Numbering each class separately
would give fewer.
"""

from typing import ClassVar

import numpy as np

from bench.data.image_folders import ImageFolders


class OfficeCaltech(ImageFolders):
    classes: ClassVar[tuple[str, ...]] = (
        "backpack",
        "bike",
        "calculator",
        "headphones",
        "keyboard",
        "laptop",
        "monitor",
        "mouse",
        "mug",
        "projector",
    )
    counts: ClassVar[dict[str, tuple[int, int] | None]] = {
        "caltech": (899, 224),
        "amazon": (768, 190),
        "webcam": (237, 58),
        "dslr": (127, 30),
    }
    stems: ClassVar[tuple[str, ...]] = ("office_caltech", "office_caltech_10", "office_caltech10_224")
    aliases: ClassVar[dict[str, str]] = {
        "back_pack": "backpack",
        "headphone": "headphones",
        "head_phones": "headphones",
        "laptop_computer": "laptop",
        "caltech10": "caltech",
        "caltech_10": "caltech",
        "caltech256": "caltech",
    }
    origin: ClassVar[str] = (
        "put the Office-Caltech-10 pictures there as office_caltech/ or office_caltech.zip with "
        "amazon|caltech|dslr|webcam/CLASS/*.jpg inside, or run `bench data import office_caltech PATH`"
    )

    def in_train(self, positions: np.ndarray) -> np.ndarray:
        return positions % 10 <= 7
