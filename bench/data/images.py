"""Decodes pictures of any kind into arrays of square RGB images."""

import io
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Literal

import numpy as np
from PIL import Image, UnidentifiedImageError

from bench.data.sources import Source, reading

CHUNK = 512
MOST_PIXELS = 50_000_000
"""A few kilobytes can claim to be a picture of gigabytes."""

Fit = Literal["stretch", "crop"]
"""How a picture becomes a square: stretched without regard to its proportions, or its middle cropped and
scaled bicubically, as encoders expect."""


def decoded(source: Source, names: Sequence[str], size: int, fit: Fit = "stretch") -> np.ndarray:
    """The named pictures as uint8 (N, 3, size, size), decoded by several threads."""
    position = {name: i for i, name in enumerate(names)}
    pixels = np.empty((len(names), 3, size, size), np.uint8)

    def decode(item: tuple[str, bytes]) -> None:
        name, data = item
        with reading(source.path, name), _opened(data) as picture:
            square = _square if fit == "stretch" else _middle
            pixels[position[name]] = square(picture.convert("RGB"), size)

    contents = source.contents(names)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        # In chunks, so that a large archive is never in memory as a whole.
        while piece := list(islice(contents, CHUNK)):
            for _ in pool.map(decode, piece):
                pass
    return pixels


def _opened(data: bytes) -> Image.Image:
    try:
        picture = Image.open(io.BytesIO(data))
    except UnidentifiedImageError:  # its own text names the buffer, not the file
        raise ValueError("not a picture in a known format") from None
    if picture.width * picture.height > MOST_PIXELS:
        raise ValueError(f"a picture of {picture.width} × {picture.height} pixels is too large")
    return picture


def scaled(images: np.ndarray, size: int) -> np.ndarray:
    """uint8 images (N, H, W) or (N, H, W, 3) as (N, 3, size, size)."""
    if images.shape[1:3] == (size, size):
        return planes(images)
    squares = np.empty((len(images), 1 if images.ndim == 3 else 3, size, size), np.uint8)
    for i, image in enumerate(images):
        squares[i] = _square(Image.fromarray(image), size)
    return np.ascontiguousarray(np.broadcast_to(squares, (len(images), 3, size, size)))


def planes(images: np.ndarray) -> np.ndarray:
    """uint8 images (N, H, W) or (N, H, W, 3) as (N, 3, H, W)."""
    channels = images[:, None] if images.ndim == 3 else images.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(np.broadcast_to(channels, (len(images), 3, *images.shape[1:3])))


def _square(picture: Image.Image, size: int) -> np.ndarray:
    """Scaled bilinearly; for smaller sizes Pillow widens the filter, so that every pixel counts."""
    pixels = np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR))
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _middle(picture: Image.Image, size: int) -> np.ndarray:
    """The middle square, after the shorter side has been scaled to `size`."""
    width, height = picture.size
    shorter = min(width, height)
    # Rounded as torchvision's transforms do.
    width, height = (int(size * side / shorter) for side in (width, height))
    scaled_picture = picture.resize((width, height), Image.Resampling.BICUBIC)
    left, top = round((width - size) / 2), round((height - size) / 2)
    return np.asarray(scaled_picture.crop((left, top, left + size, top + size))).transpose(2, 0, 1)
