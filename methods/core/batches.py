"""A client's samples, cut into the steps of one round.

The same method code works on two kinds of batches: `RaggedBatches`, where the last batch of an epoch is just
shorter, and `PaddedBatches`, where all clients of a round are stacked and padded to one shape, with masks
that say which samples and which steps are real.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch
from torch import Tensor

from methods.core.loss_terms import LossTerms
from methods.core.random import normal, uniform
from methods.fast.gather import Pieces, placed, rows
from methods.fast.vmap_levels import rows_in_turn

if TYPE_CHECKING:
    from methods.core.samples_by_index import SamplesByIndex


class Samples(NamedTuple):
    x: Tensor
    y: Tensor

    @property
    def bytes(self) -> int:
        return self.x.nbytes + self.y.nbytes


class Mixed(NamedTuple):
    """The smaller part of samples that mixup made of two."""

    y: Tensor
    """Its labels."""
    share: Tensor
    """How much of a sample it is, at most ½; one number for the whole batch."""


class Batch(NamedTuple):
    x: Tensor
    y: Tensor
    """Labels; of mixed samples, those of the larger part."""
    mask: Tensor | None = None
    """1 for a real sample, 0 for padding; None: all are real."""
    live: Tensor | None = None
    """Whether this step is real for this client; None: it is."""
    shares: Tensor | None = None
    """What every sample counts in a mean, the mask divided by its sum; None: not computed yet."""
    stacked: bool = False
    """Whether this is one client of a stack, seen from inside `vmap`."""
    key: int | Tensor = 0
    """What this step's random numbers depend on."""
    mixed: Mixed | None = None
    """What else is in samples that mixup made; `cross_entropy` takes it into account."""
    smoothing: float = 0.0
    """ε of label smoothing, for `cross_entropy`; 0 outside of training."""
    terms: LossTerms | None = None
    """Where the terms of the loss are noted; None: they are not recorded."""
    at: Tensor | None = None
    """Where the samples stand in the pool that they were taken from; None: not known."""
    start: int | Tensor = 0
    """Where the client's own samples begin in that pool."""

    @property
    def position(self) -> Tensor:
        """Which of the client's samples these are, counted from 0; samples made anew count on."""
        if self.at is None:
            raise ValueError("these samples were not taken from a client's own")
        return self.at - self.start

    @property
    def real(self) -> Tensor:
        """1 for every real sample, 0 for padding: what to multiply by before a sum over samples."""
        if self.mask is not None:
            return self.mask
        return torch.ones(len(self.y), dtype=torch.float32, device=self.y.device)

    @property
    def count(self) -> Tensor:  # type: ignore[override]  # a tuple has a method of this name
        """How many samples are real; 0 in a step that only pads."""
        return self.real.sum()

    def keeping(self, chosen: Tensor) -> Batch:
        """The same batch, in which the samples that are not chosen count as padding."""
        mask = chosen.float() if self.mask is None else self.mask * chosen
        return self._replace(mask=mask, shares=None)

    def with_inputs(self, x: Tensor) -> Batch:
        """The same batch with something else in place of x, such as features."""
        return self._replace(x=x)

    def unrecorded(self) -> Batch:
        """The same batch for a loss that is not part of the record."""
        return self._replace(terms=None)

    @staticmethod
    def joined(pieces: Iterable[Batch]) -> Batch:
        """One batch of all samples of several, which `Batches.once` gives."""
        parts = list(pieces)
        masks, places = ([getattr(part, name) for part in parts] for name in ("mask", "at"))
        return Batch(
            torch.cat([part.x for part in parts]),
            torch.cat([part.y for part in parts]),
            None if masks[0] is None else torch.cat(masks),
            stacked=parts[0].stacked,
            at=None if places[0] is None else torch.cat(places),
        )

    def term(self, name: str, value: Tensor) -> Tensor:
        """The value itself, noted as a term of the client's loss where these are recorded."""
        if self.terms is not None:
            self.terms.note(name, value, self.live)
        return value

    def uniform(self, *shape: int, stream: int = 0) -> Tensor:
        """Random numbers in [0, 1), the same whatever the executor; another stream gives others."""
        return uniform(self.key, stream, shape, self.y.device)

    def normal(self, *shape: int, stream: int = 0) -> Tensor:
        """The same, normally distributed."""
        return normal(self.key, stream, shape, self.y.device)

    def mean(self, per_sample: Tensor) -> Tensor:
        """The mean over the real samples."""
        if self.mask is None:
            return per_sample.mean()
        if self.shares is not None:
            return (per_sample * self.shares).sum()
        return (per_sample * self.mask).sum() / self.mask.sum().clamp(min=1)


class Batches(Protocol):
    @property
    def steps(self) -> int | Tensor:
        """How many real steps this client takes in the round."""

    @property
    def samples(self) -> int | Tensor:
        """How many training samples the client holds."""

    def __iter__(self) -> Iterator[Batch]:
        """The steps of the round, in order."""

    def once(self) -> Iterator[Batch]:
        """Every sample of the client exactly once, in bounded pieces."""

    def all(self) -> Batch:
        """Every sample of the client exactly once, in one batch."""


class RaggedBatches:
    """One client's batches, cut from its own tensors; `renewed` gives other samples to later epochs."""

    def __init__(
        self,
        samples: Samples,
        orders: list[Tensor],
        size: int,
        key: int = 0,
        renewed: Callable[[int], Samples] | None = None,
        prepare: Callable[[Batch], Batch] | None = None,
    ) -> None:
        self._samples, self._orders, self._size = samples, orders, size
        self._key, self._renewed, self._prepare = key, renewed, prepare

    @property
    def steps(self) -> int:
        return sum(-(-len(order) // self._size) for order in self._orders)

    @property
    def samples(self) -> int:
        return len(self._samples.y)

    def __iter__(self) -> Iterator[Batch]:
        key = self._key
        for epoch, order in enumerate(self._orders):
            x, y = self._renewed(epoch) if self._renewed and epoch else self._samples
            for part in torch.split(order, GATHERED * self._size):
                pieces = (torch.split(gathered, self._size) for gathered in (rows(x, part), y[part], part))
                for xs, ys, at in zip(*pieces, strict=True):
                    batch = Batch(xs, ys, key=key, at=at)
                    yield batch if self._prepare is None else self._prepare(batch)
                    key += 1

    def once(self) -> Iterator[Batch]:
        at = torch.arange(self.samples, device=self._samples.y.device)
        parts = (torch.split(part, PIECE) for part in (*self._samples, at))
        return (Batch(x, y, at=at) for x, y, at in zip(*parts, strict=True))

    def all(self) -> Batch:
        return Batch.joined(self.once())


class PaddedBatches(NamedTuple):
    """One client of a stack, as seen from inside `vmap`: positions in a pool of samples, and masks."""

    x: Tensor | SamplesByIndex | Pieces
    y: Tensor | Pieces
    order: Tensor
    """steps × batch size, positions in the pool."""
    mask: Tensor | None
    live: Tensor | None
    """Which of the last steps are real, from the first one that some client of the stack does not take."""
    start: Tensor
    """Where the client's samples begin in the pool."""
    steps: Tensor
    samples: Tensor
    most: int
    """Samples of the largest client of the stack."""
    key: Tensor
    """What the client's random numbers of this round depend on."""
    prepare: Callable[[Batch], Batch] | None = None
    """What is done to every batch: augmentation, smoothing, notes of the loss."""

    def __iter__(self) -> Iterator[Batch]:
        uneven = self.order.shape[0] - (0 if self.live is None else self.live.shape[0])
        for step, (at, place, labels, key, shares) in enumerate(self._in_turn()):
            batch = Batch(
                rows(self.x, place),
                labels,
                None if self.mask is None else self.mask[step],
                None if self.live is None or step < uneven else self.live[step - uneven],
                shares,
                stacked=True,
                key=key,
                at=at,
                start=self.start,
            )
            yield batch if self.prepare is None else self.prepare(batch)
            del batch

    def _in_turn(self) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]]:
        """Positions, where the samples at these are, labels, key and shares of every step.

        They are small and computed for all steps at once: operations cost more to start than to do.
        """
        steps, on_cpu = self.order.shape[0], self.y.device.type == "cpu"
        if steps == 1 and on_cpu:
            at = self.order[0]
            yield at, placed(self.x, at), rows(self.y, at), self.key, None
            return
        shares = None
        if self.mask is not None and not on_cpu:
            shares = self.mask / self.mask.sum(dim=1, keepdim=True).clamp(min=1)
        order, found = rows_in_turn(self.order), placed(self.x, self.order)
        places = order if found is self.order else rows_in_turn(found)
        labels = rows_in_turn(rows(self.y, self.order.reshape(-1)).view(self.order.shape))
        keys = self.key + torch.arange(steps, device=self.y.device)
        for step in range(steps):
            yield (
                order[step],
                places[step],
                labels[step],
                keys[step],
                None if shares is None else shares[step],
            )

    def once(self) -> Iterator[Batch]:
        for first in range(0, self.most, PIECE):
            number = torch.arange(first, min(first + PIECE, self.most), device=self.y.device)
            at = self.start + torch.minimum(number, self.samples - 1)
            x, y = rows(self.x, placed(self.x, at)), rows(self.y, at)
            real = (number < self.samples).to(torch.get_default_dtype())
            yield Batch(x, y, real, stacked=True, at=number)

    def all(self) -> Batch:
        return Batch.joined(self.once())


PIECE = 128
"""Samples per piece of `once`."""
GATHERED = 64
"""Steps whose samples are gathered at once: faster than step by step, and of bounded size."""


def steps_of(orders: list[list[Tensor]], size: int) -> list[int]:
    """How many steps each client takes."""
    return [sum(-(-len(permutation) // size) for permutation in epochs) for epochs in orders]


def stack_orders(
    orders: list[list[Tensor]], starts: list[int], size: int
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Pad several clients' visiting orders to one (clients, steps, size) block of pool positions.

    `orders[k]` holds client k's permutation for every epoch, `starts[k]` where its samples begin in the pool.
    """
    steps = steps_of(orders, size)
    most = max(steps)
    if all(step == most for step in steps) and all(len(part) % size == 0 for k in orders for part in k):
        visits = torch.cat([order for epochs in orders for order in epochs]).view(len(orders), -1)
        return (visits + torch.tensor(starts)[:, None]).view(len(orders), most, size), None, None
    order = torch.tensor(starts)[:, None].expand(-1, most * size).clone()
    mask = torch.zeros(len(orders), most * size)
    for k, epochs in enumerate(orders):
        first = 0
        for permutation in epochs:
            cells = slice(first, first + len(permutation))
            order[k, cells] = permutation + starts[k]
            mask[k, cells] = 1
            first += -(-len(permutation) // size) * size
    fewest = min(steps)
    live = None if fewest == most else torch.arange(fewest, most) < torch.tensor(steps)[:, None]
    return order.view(-1, most, size), mask.view(-1, most, size), live
