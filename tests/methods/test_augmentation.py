"""Augmentation against plain indexing, torchvision's functions and SciPy's distribution."""

import pytest
import torch
from scipy.stats import beta, kstest
from torch import Tensor
from torch.func import vmap
from torchvision.transforms.v2 import functional as TF

from methods.base import Batch
from methods.core.augmentation import (
    BRIGHTNESS,
    CONTRAST,
    CROP,
    FLIP,
    SATURATION,
    cropped,
    flipped,
    jittered,
    mixed,
    mixup_shares,
)
from tests.kit.tiny import draw

COUNT = 9
X = torch.randint(0, 256, (COUNT, 3, 6, 5), generator=draw(0), dtype=torch.uint8)
Y = torch.arange(COUNT) % 3
BATCH = Batch(X, Y, key=11)


def test_a_crop_is_a_window_of_the_padded_picture() -> None:
    padding = 2
    found = cropped(BATCH, padding).x
    places = (BATCH.uniform(COUNT, 2, stream=CROP) * 5).long()
    assert found.dtype == torch.uint8 and len(places.unique()) == 5
    for picture, result, (top, left) in zip(X, found, places.tolist(), strict=True):
        padded = torch.zeros(3, 10, 9, dtype=torch.uint8)
        padded[:, 2:8, 2:7] = picture
        assert torch.equal(result, padded[:, top : top + 6, left : left + 5])


def test_about_half_of_the_pictures_are_mirrored() -> None:
    found = flipped(BATCH).x
    chosen = BATCH.uniform(COUNT, stream=FLIP) < 0.5
    assert 0 < chosen.sum() < COUNT
    for picture, result, mirrored in zip(X, found, chosen.tolist(), strict=True):
        assert torch.equal(result, TF.horizontal_flip(picture) if mirrored else picture)


def test_colours_are_those_of_torchvision() -> None:
    found = jittered(BATCH, 0.4, 0.3, 0.8).x / 255
    brightness, contrast, saturation = (
        (1 + strength * (2 * BATCH.uniform(COUNT, stream=stream) - 1)).tolist()
        for strength, stream in ((0.4, BRIGHTNESS), (0.3, CONTRAST), (0.8, SATURATION))
    )
    for place, picture in enumerate(X.float() / 255):
        expected = TF.adjust_brightness(picture, brightness[place])
        expected = TF.adjust_saturation(TF.adjust_contrast(expected, contrast[place]), saturation[place])
        assert torch.allclose(found[place], expected, atol=2e-4)  # torchvision's grey sums to 0.9999


@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.0])
def test_shares_of_mixtures_have_the_distribution_of_mixup(alpha: float) -> None:
    shares = mixup_shares(alpha)
    drawn = [float(mixed(Batch(X.float(), Y, key=key), shares).mixed.share) for key in range(400)]  # type: ignore[union-attr]
    assert min(drawn) >= 0 and max(drawn) <= 0.5
    smaller = beta(alpha, alpha)  # of λ and 1 − λ the smaller one
    assert kstest(drawn, lambda value: 2 * smaller.cdf(value)).pvalue > 0.01


def test_a_mixture_is_of_both_samples_and_their_labels() -> None:
    x = X.float()
    found = mixed(Batch(x, Y, key=5), mixup_shares(1.0))
    assert found.mixed is not None and torch.equal(found.y, Y)
    share = found.mixed.share
    partners = [
        next(k for k in range(COUNT) if torch.allclose(mixture, (1 - share) * own + share * x[k], atol=1e-3))
        for mixture, own in zip(found.x, x, strict=True)
    ]
    assert sorted(partners) == list(range(COUNT)), "every sample is the smaller part of one mixture"
    assert found.mixed.y.tolist() == Y[partners].tolist()


def test_a_stack_makes_the_batches_of_the_loop_and_padding_stays_padding() -> None:
    """The second client has only the first five samples."""
    counts, keys = (COUNT, 5), torch.tensor([3, 70])
    masks = (torch.arange(COUNT) < torch.tensor(counts)[:, None]).float()
    shares = mixup_shares(0.4)

    def changed(batch: Batch) -> Batch:
        return mixed(jittered(flipped(cropped(batch, 2)), 0.2, 0.2, 0.2), shares)

    def one(key: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        made = changed(Batch(X, Y, mask, stacked=True, key=key))
        assert made.mixed is not None
        return made.x, made.mixed.y, made.mixed.share

    stacked = vmap(one)(keys, masks)
    for client, (count, key) in enumerate(zip(counts, keys.tolist(), strict=True)):
        alone = changed(Batch(X[:count], Y[:count], key=key))
        assert alone.mixed is not None
        assert torch.allclose(stacked[0][client, :count], alone.x, atol=1e-4)
        assert torch.equal(stacked[1][client, :count], alone.mixed.y)
        assert torch.allclose(stacked[2][client], alone.mixed.share)
