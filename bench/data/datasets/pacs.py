"""PACS: seven kinds of objects as photos, paintings, cartoons and sketches; DOMAIN/CLASS/*.jpg.

Of a domain's N pictures in order (by class, then by file name), int(0.7·N) are train, spread evenly.
"""

from typing import ClassVar

import numpy as np

from bench.data.image_folders import ImageFolders, seven_tenths


class Pacs(ImageFolders):
    classes: ClassVar[tuple[str, ...]] = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")
    counts: ClassVar[dict[str, tuple[int, int] | None]] = {
        "photo": (1169, 501),
        "art_painting": (1433, 615),
        "cartoon": (1640, 704),
        "sketch": (2750, 1179),
    }
    stems: ClassVar[tuple[str, ...]] = ("pacs", "PACS", "kfold", "pacs_128")
    aliases: ClassVar[dict[str, str]] = {
        "art": "art_painting",
        "artpainting": "art_painting",
        "art_paintings": "art_painting",
        "photos": "photo",
        "cartoons": "cartoon",
        "sketches": "sketch",
    }
    origin: ClassVar[str] = (
        "put the PACS pictures there as pacs/ or pacs.zip with photo|art_painting|cartoon|sketch/CLASS/*.jpg "
        "inside, or run `bench data import pacs PATH`"
    )

    def in_train(self, positions: np.ndarray) -> np.ndarray:
        return seven_tenths(positions)
