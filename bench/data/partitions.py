"""How a dataset's samples are divided among clients; all of it is drawn from the seed alone."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, get_args

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt, model_validator

from bench.data.base import Dataset, Split
from bench.errors import UserError, nearest
from bench.validation import validated

STREAM = 0x70617274  # "part": keeps these draws apart from others made from the same seed
MAX_DRAWS = 1000


@dataclass(frozen=True)
class Client:
    """Domain → sorted indices into the dataset's train and test arrays of that domain."""

    domain: str | None
    """The one domain it belongs to, or None if it has samples of several."""
    train: dict[str, np.ndarray]
    test: dict[str, np.ndarray]

    @property
    def size(self) -> int:
        return sum(len(indices) for indices in self.train.values())


@dataclass(frozen=True)
class Partition:
    clients: tuple[Client, ...]

    @cached_property
    def digest(self) -> str:
        """Sixteen hexadecimal digits over everything each client has."""
        total = hashlib.sha256()
        for client in self.clients:
            for part in (client.train, client.test):
                for domain, indices in part.items():
                    total.update(f"{domain} {len(indices)}\n".encode())
                    total.update(indices.astype("<i8").tobytes())
            total.update(b"\n")
        return total.hexdigest()[:16]


class _Spec(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def divide(self, dataset: Dataset, rng: np.random.Generator) -> list[Client]:
        raise NotImplementedError


def _client_numbers(value: Any) -> Any:
    if isinstance(value, Mapping):
        numbers = list(value.values())
        fits = all(isinstance(number, int) and number >= 0 for number in numbers) and any(numbers)
    else:
        fits = isinstance(value, int) and value > 0
    if not fits:
        raise ValueError("give a positive number of clients, or such a number for each domain by its name")
    return value


class ByDomain(_Spec):
    """Clients of one domain each, with every class of it as far as its count allows.

    A client's own test set is its domain's whole test set.
    """

    name: Literal["by_domain"] = "by_domain"
    clients: Annotated[int | dict[str, int], BeforeValidator(_client_numbers)]
    """Domain → number of clients; a plain number is spread evenly, earlier domains first."""
    fraction: float | None = Field(default=None, gt=0, le=1)
    """Share of the domain's train set that each of its clients gets."""
    samples: PositiveInt | None = None
    """The same as a number. With neither, the clients of a domain divide all of it."""

    @model_validator(mode="after")
    def _one_size(self) -> "ByDomain":
        if self.fraction is not None and self.samples is not None:
            raise ValueError("give 'fraction' or 'samples', not both")
        return self

    def per_domain(self, domains: tuple[str, ...]) -> dict[str, int]:
        """Domain → number of clients."""
        if isinstance(self.clients, int):
            each, more = divmod(self.clients, len(domains))
            return {domain: each + (i < more) for i, domain in enumerate(domains)}
        for domain in self.clients:
            if domain not in domains:
                hint = nearest(domain, domains)
                raise UserError(f"partition 'by_domain': unknown domain '{domain}' in 'clients'; {hint}")
        return {domain: self.clients.get(domain, 0) for domain in domains}

    def divide(self, dataset: Dataset, rng: np.random.Generator) -> list[Client]:
        clients = []
        for domain, number in self.per_domain(dataset.domains).items():
            if number == 0:
                continue
            labels = dataset.train[domain].y
            test = np.arange(len(dataset.test[domain]))
            for train in _dealt(labels, number, self._total(domain, number, len(labels)), rng):
                clients.append(Client(domain, {domain: train}, {domain: test}))
        return clients

    def _total(self, domain: str, number: int, available: int) -> int:
        if self.fraction is None and self.samples is None:
            wanted = available
        else:
            # The small addend undoes products such as 0.29·100 = 28.999…
            size = self.samples or int((self.fraction or 0) * available + 1e-9)
            wanted = number * size
        if not number <= wanted <= available:
            raise UserError(
                f"partition 'by_domain': {number} clients of domain '{domain}' need "
                f"{max(wanted, number)} of its {available} train samples; "
                "lower 'clients', or change 'fraction' or 'samples'"
            )
        return wanted


class Dirichlet(_Spec):
    """Label skew: the samples of each class are divided by a Dirichlet(β) draw over the clients.

    Drawn again until every client has `min_size` samples. A client's own test set is as many test samples as
    there are in the class proportions of its train samples; those of different clients may overlap.
    """

    name: Literal["dirichlet"] = "dirichlet"
    clients: PositiveInt
    beta: float = Field(gt=0)
    min_per_class: int = Field(default=0, ge=0)
    """Samples of every class that each client gets before the draw."""
    min_size: PositiveInt = 1

    def divide(self, dataset: Dataset, rng: np.random.Generator) -> list[Client]:
        pool = _Pool.of(dataset.train)
        _require_samples(self.name, self.clients, len(pool.labels))
        totals = np.bincount(pool.labels, minlength=len(dataset.classes))
        shared = totals - self.clients * self.min_per_class
        if self.min_per_class and (shared < 0).any():
            scarce = int(shared.argmin())
            raise UserError(
                f"partition 'dirichlet': min_per_class = {self.min_per_class} at {self.clients} clients is "
                f"more than the {totals[scarce]} samples of class '{dataset.classes[scarce]}'; lower either"
            )
        counts = self.min_per_class + self._counts(shared, rng)
        parts = _split_classes(pool.labels, counts, rng)
        return _label_skewed(parts, pool, dataset, rng)

    def _counts(self, shared: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Samples per class and client, beyond those that everyone gets."""
        for _ in range(MAX_DRAWS):
            shares = rng.dirichlet(np.full(self.clients, self.beta), size=len(shared))
            ends = (shares.cumsum(1) * shared[:, None]).round().astype(np.int64)
            ends[:, -1] = shared
            counts = np.diff(ends, axis=1, prepend=0)
            if (counts.sum(0) + len(shared) * self.min_per_class >= self.min_size).all():
                return counts
        raise UserError(
            f"partition 'dirichlet': {MAX_DRAWS} draws with beta = {self.beta} each left one of the "
            f"{self.clients} clients with fewer than {self.min_size} samples; raise 'beta' or "
            "'min_per_class', or lower 'min_size' or 'clients'"
        )


class Lds(_Spec):
    """Label and domain skew: one client a domain, each class thinned out by a Dirichlet(β) over the domains.

    The draw's entry for a domain is the share of its samples of the class that stay. Drawn again until every
    client has a sample. A client's own test set is its domain's whole test set.
    """

    name: Literal["lds"] = "lds"
    beta: float = Field(gt=0)

    def divide(self, dataset: Dataset, rng: np.random.Generator) -> list[Client]:
        counts = np.stack(
            [np.bincount(split.y, minlength=len(dataset.classes)) for split in dataset.train.values()]
        )
        kept = self._kept(counts, rng)
        clients = []
        for domain, per_class in zip(dataset.domains, kept, strict=True):
            train = _draw_per_class(dataset.train[domain].y, per_class, rng)
            clients.append(Client(domain, {domain: train}, {domain: np.arange(len(dataset.test[domain]))}))
        return clients

    def _kept(self, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        domains, classes = counts.shape
        for _ in range(MAX_DRAWS):
            shares = rng.dirichlet(np.full(domains, self.beta), size=classes).T
            kept = (shares * counts).round().astype(np.int64)
            if kept.sum(1).all():
                return kept
        raise UserError(
            f"partition 'lds': {MAX_DRAWS} draws with beta = {self.beta} left a domain without samples; "
            "raise 'beta'"
        )


class Iid(_Spec):
    """Samples dealt out at random in equal numbers. A client's own test set is the whole test set."""

    name: Literal["iid"] = "iid"
    clients: PositiveInt

    def divide(self, dataset: Dataset, rng: np.random.Generator) -> list[Client]:
        pool = _Pool.of(dataset.train)
        _require_samples(self.name, self.clients, len(pool.labels))
        test = {domain: np.arange(len(split)) for domain, split in dataset.test.items()}
        parts = np.array_split(rng.permutation(len(pool.labels)), self.clients)
        return [_client(pool.by_domain(part), test) for part in parts]


class Shards(_Spec):
    """Samples sorted by class and cut into equal shards, of which each client gets some at random.

    A client's own test set is drawn as for `dirichlet`.
    """

    name: Literal["shards"] = "shards"
    clients: PositiveInt
    shards_per_client: PositiveInt = 2

    def divide(self, dataset: Dataset, rng: np.random.Generator) -> list[Client]:
        pool = _Pool.of(dataset.train)
        number = self.clients * self.shards_per_client
        _require_samples(self.name, number, len(pool.labels), what="shards")
        shuffled = rng.permutation(len(pool.labels))
        by_class = shuffled[np.argsort(pool.labels[shuffled], kind="stable")]
        shards = np.array_split(by_class, number)
        hands = rng.permutation(number).reshape(self.clients, self.shards_per_client)
        parts = [np.concatenate([shards[i] for i in hand]) for hand in hands]
        return _label_skewed(parts, pool, dataset, rng)


PartitionSpec = ByDomain | Dirichlet | Lds | Iid | Shards
_SPECS: dict[str, type[PartitionSpec]] = {
    spec.model_fields["name"].default: spec for spec in get_args(PartitionSpec)
}


def partition_names() -> list[str]:
    return list(_SPECS)


def partition_spec(mapping: Mapping[str, Any]) -> PartitionSpec:
    """The checked partition of a suite; `name` says which kind it is."""
    if "name" not in mapping:
        raise UserError(f"partition: key 'name' is missing; give one of {', '.join(_SPECS)}")
    name = str(mapping["name"])
    if name not in _SPECS:
        raise UserError(f"partition: unknown name '{name}'; {nearest(name, _SPECS)}")
    return validated(_SPECS[name], mapping, where=f"partition '{name}'")


def make_partition(spec: PartitionSpec, dataset: Dataset, seed: int) -> Partition:
    """The clients, the same for the same dataset, specification and seed."""
    return Partition(tuple(spec.divide(dataset, np.random.default_rng([seed, STREAM]))))


def class_counts(partition: Partition, dataset: Dataset) -> np.ndarray:
    """Train samples per client and class."""
    counts = np.zeros((len(partition.clients), len(dataset.classes)), np.int64)
    for row, client in zip(counts, partition.clients, strict=True):
        for domain, indices in client.train.items():
            row += np.bincount(dataset.train[domain].y[indices], minlength=len(row))
    return counts


def split_validation(
    indices: np.ndarray, labels: np.ndarray, fraction: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Divide a client's indices into train and a stratified hold-out; `labels` are those of the indices.

    Each class keeps at least one sample in train.
    """
    counts = np.bincount(labels)
    spare = np.maximum(counts - 1, 0)
    wanted = min(int(fraction * len(indices) + 0.5), int(spare.sum()))
    held_out = np.zeros(len(indices), bool)
    held_out[_draw_per_class(labels, _quotas(counts, wanted, most=spare), rng)] = True
    return indices[~held_out], indices[held_out]


class _Pool(NamedTuple):
    """The samples of all domains one after another."""

    domains: tuple[str, ...]
    offsets: np.ndarray
    labels: np.ndarray

    @classmethod
    def of(cls, splits: Mapping[str, Split]) -> "_Pool":
        offsets = np.cumsum([0, *(len(split) for split in splits.values())])
        return cls(tuple(splits), offsets, np.concatenate([split.y for split in splits.values()]))

    def by_domain(self, members: np.ndarray) -> dict[str, np.ndarray]:
        """Positions in the pool as sorted indices into each domain that has any of them."""
        members = np.sort(members)
        bounds = np.searchsorted(members, self.offsets)
        return {
            domain: members[bounds[i] : bounds[i + 1]] - self.offsets[i]
            for i, domain in enumerate(self.domains)
            if bounds[i] < bounds[i + 1]
        }


def _require_samples(name: str, number: int, available: int, what: str = "clients") -> None:
    if number > available:
        raise UserError(
            f"partition '{name}': {number} {what} need at least as many train samples, "
            f"but there are {available}; lower 'clients'"
        )


def _client(train: dict[str, np.ndarray], test: dict[str, np.ndarray]) -> Client:
    return Client(next(iter(train)) if len(train) == 1 else None, train, test)


def _dealt(labels: np.ndarray, hands: int, total: int, rng: np.random.Generator) -> list[np.ndarray]:
    """`total` samples in the class proportions of all, dealt like cards, class after class.

    So the hands differ by one card at most, in size and in each class.
    """
    counts = np.bincount(labels)
    least = np.minimum(counts, hands)
    if least.sum() > total:
        least = np.zeros_like(counts)
    drawn = _draw_per_class(labels, _quotas(counts, total, least=least), rng, shuffled=True)
    by_class = drawn[np.argsort(labels[drawn], kind="stable")]
    return [np.sort(by_class[hand::hands]) for hand in range(hands)]


def _quotas(
    counts: np.ndarray, total: int, least: np.ndarray | None = None, most: np.ndarray | None = None
) -> np.ndarray:
    """`total` divided in proportion to the counts, by largest remainders, within the bounds."""
    least = np.zeros_like(counts) if least is None else least
    most = counts if most is None else most
    ideal = total * counts / max(counts.sum(), 1)
    quotas = np.clip(ideal.astype(np.int64), least, most)
    while (missing := total - quotas.sum()) != 0:
        step = int(np.sign(missing))
        movable = quotas < most if step > 0 else quotas > least
        quotas[np.where(movable, step * (ideal - quotas), -np.inf).argmax()] += step
    return quotas


def _draw_per_class(
    labels: np.ndarray, counts: np.ndarray, rng: np.random.Generator, shuffled: bool = False
) -> np.ndarray:
    """Positions of counts[c] samples of each class c, without replacement."""
    drawn = [
        rng.choice(np.nonzero(labels == label)[0], count, replace=False)
        for label, count in enumerate(counts)
        if count
    ]
    members = np.concatenate([np.empty(0, np.int64), *drawn])
    return members if shuffled else np.sort(members)


def _split_classes(labels: np.ndarray, counts: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Positions for each client, given samples per class and client."""
    parts: list[list[np.ndarray]] = [[] for _ in range(counts.shape[1])]
    for label, per_client in enumerate(counts):
        members = rng.permutation(np.nonzero(labels == label)[0])
        for part, chunk in zip(parts, np.split(members, per_client.cumsum()[:-1]), strict=True):
            part.append(chunk)
    return [np.concatenate(part) for part in parts]


def _label_skewed(
    parts: list[np.ndarray], pool: _Pool, dataset: Dataset, rng: np.random.Generator
) -> list[Client]:
    """Clients whose own test samples have the class proportions of their train samples."""
    test_pool = _Pool.of(dataset.test)
    available = np.bincount(test_pool.labels, minlength=len(dataset.classes))
    clients = []
    for part in parts:
        counts = np.bincount(pool.labels[part], minlength=len(dataset.classes)) * (available > 0)
        has = counts > 0
        total = int((available[has] * counts.sum() / counts[has]).min()) if has.any() else 0
        own = _draw_per_class(test_pool.labels, _quotas(counts, total, most=available), rng)
        clients.append(_client(pool.by_domain(part), test_pool.by_domain(own)))
    return clients
