"""Pixels to arrays: any picture becomes RGB, scaled to a square without regard to its proportions."""

import io
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np
from PIL import Image

from bench.data.sources import Source, reading

CHUNK = 512


def decoded(source: Source, names: Sequence[str], size: int) -> np.ndarray:
    """The named pictures as uint8 (N, 3, size, size), decoded by several threads."""
    position = {name: i for i, name in enumerate(names)}
    pixels = np.empty((len(names), 3, size, size), np.uint8)

    def decode(item: tuple[str, bytes]) -> None:
        name, data = item
        with reading(source.path, name), Image.open(io.BytesIO(data)) as picture:
            pixels[position[name]] = _square(picture.convert("RGB"), size)

    contents = source.contents(names)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        # In pieces, so that a large archive is never in memory as a whole.
        while piece := list(islice(contents, CHUNK)):
            for _ in pool.map(decode, piece):
                pass
    return pixels


def scaled(images: np.ndarray, size: int) -> np.ndarray:
    """uint8 images (N, H, W) or (N, H, W, 3) as (N, 3, size, size)."""
    grey = images.ndim == 3
    if images.shape[1:3] == (size, size):
        planes = images[:, None] if grey else images.transpose(0, 3, 1, 2)
    else:
        planes = np.empty((len(images), 1 if grey else 3, size, size), np.uint8)
        for i, image in enumerate(images):
            planes[i] = _square(Image.fromarray(image), size)
    return np.ascontiguousarray(np.broadcast_to(planes, (len(images), 3, size, size)))


def _square(picture: Image.Image, size: int) -> np.ndarray:
    """Bilinear; Pillow widens the filter when it makes a picture smaller, so nothing is skipped."""
    pixels = np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR))
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
