"""How a dataset's samples are divided among clients. Every draw depends on the seed alone."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt, model_validator

from bench.data.base import Dataset
from bench.data.class_draws import Pool, dealt, draw_per_class, quotas_of, split_classes
from bench.data.clients import Client, Partition, class_counts
from bench.errors import UserError, nearest
from bench.validation import validated

__all__ = [
    "ByDomain",
    "Client",
    "Dirichlet",
    "Iid",
    "Lds",
    "Partition",
    "PartitionSpec",
    "Shards",
    "class_counts",
    "make_partition",
    "partition_spec",
    "split_validation",
]

STREAM = 0x70617274  # "part": keeps these draws apart from others made from the same seed
MAX_DRAWS = 1000


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
        raise ValueError("give a positive number of clients, or a number for each domain by its name")
    return value


class ByDomain(_Spec):
    """Domain skew: each client has samples of one domain, with every class of it if there are enough.

    A client's own test set is its domain's whole test set.
    """

    name: Literal["by_domain"] = "by_domain"
    clients: Annotated[int | dict[str, int], BeforeValidator(_client_numbers)]
    """Domain → number of clients; a plain number is spread evenly, earlier domains first."""
    fraction: float | None = Field(default=None, gt=0, le=1)
    """Share of the domain's train set that each of its clients gets."""
    samples: PositiveInt | None = None
    """Number of train samples per client, instead of a share. With neither, a domain's clients divide all of
    its samples."""

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
            for train in dealt(labels, number, self._total(domain, number, len(labels)), rng):
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

    The draw is repeated until every client has `min_size` samples. A client's own test set is as large as the
    test samples allow in the class proportions of its train samples; those of different clients may overlap.
    """

    name: Literal["dirichlet"] = "dirichlet"
    clients: PositiveInt
    beta: float = Field(gt=0)
    min_per_class: int = Field(default=0, ge=0)
    """Samples of every class that each client gets before the draw."""
    min_size: PositiveInt = 1

    def divide(self, dataset: Dataset, rng: np.random.Generator) -> list[Client]:
        pool = Pool.of(dataset.train)
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
        parts = split_classes(pool.labels, counts, rng)
        return _label_skewed(parts, pool, dataset, rng)

    def _counts(self, shared: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Samples per class and client, beyond `min_per_class`."""
        for _ in range(MAX_DRAWS):
            shares = rng.dirichlet(np.full(self.clients, self.beta), size=len(shared))
            ends = (shares.cumsum(1) * shared[:, None]).round().astype(np.int64)
            ends[:, -1] = shared
            counts: np.ndarray = np.diff(ends, axis=1, prepend=0)
            if (counts.sum(0) + len(shared) * self.min_per_class >= self.min_size).all():
                return counts
        raise UserError(
            f"partition 'dirichlet': {MAX_DRAWS} draws with beta = {self.beta} each left one of the "
            f"{self.clients} clients with fewer than {self.min_size} samples; raise 'beta' or "
            "'min_per_class', or lower 'min_size' or 'clients'"
        )


class Lds(_Spec):
    """Label and domain skew: one client per domain, classes thinned by a Dirichlet(β) draw over domains.

    The draw's entry for a domain is the share of its samples of the class that are kept. The draw is repeated
    until every client has a sample. A client's own test set is its domain's whole test set.
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
            train = draw_per_class(dataset.train[domain].y, per_class, rng)
            clients.append(Client(domain, {domain: train}, {domain: np.arange(len(dataset.test[domain]))}))
        return clients

    def _kept(self, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        domains, classes = counts.shape
        for _ in range(MAX_DRAWS):
            shares = rng.dirichlet(np.full(domains, self.beta), size=classes).T
            kept: np.ndarray = (shares * counts).round().astype(np.int64)
            if kept.sum(1).all():
                return kept
        raise UserError(
            f"partition 'lds': {MAX_DRAWS} draws with beta = {self.beta} left a domain without samples; "
            "raise 'beta'"
        )


class Iid(_Spec):
    """Samples dealt at random in equal numbers. A client's own test set is the whole test set."""

    name: Literal["iid"] = "iid"
    clients: PositiveInt

    def divide(self, dataset: Dataset, rng: np.random.Generator) -> list[Client]:
        pool = Pool.of(dataset.train)
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
        pool = Pool.of(dataset.train)
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


def partition_spec(mapping: Mapping[str, Any]) -> PartitionSpec:
    """The checked options of a partition, from a mapping with its `name`."""
    if "name" not in mapping:
        raise UserError(f"partition: key 'name' is missing; give one of {', '.join(_SPECS)}")
    name = str(mapping["name"])
    if name not in _SPECS:
        raise UserError(f"partition: unknown name '{name}'; {nearest(name, _SPECS)}")
    return validated(_SPECS[name], mapping, where=f"partition '{name}'")


def make_partition(spec: PartitionSpec, dataset: Dataset, seed: int) -> Partition:
    """The clients; the same dataset, specification and seed always give the same ones."""
    return Partition(tuple(spec.divide(dataset, np.random.default_rng([seed, STREAM]))))


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
    held_out[draw_per_class(labels, quotas_of(counts, wanted, most=spare), rng)] = True
    return indices[~held_out], indices[held_out]


def _require_samples(name: str, number: int, available: int, what: str = "clients") -> None:
    if number > available:
        raise UserError(
            f"partition '{name}': {number} {what} need at least as many train samples, "
            f"but there are {available}; lower 'clients'"
        )


def _client(train: dict[str, np.ndarray], test: dict[str, np.ndarray]) -> Client:
    return Client(next(iter(train)) if len(train) == 1 else None, train, test)


def _label_skewed(
    parts: list[np.ndarray], pool: Pool, dataset: Dataset, rng: np.random.Generator
) -> list[Client]:
    """Clients whose own test samples have the class proportions of their train samples."""
    test_pool = Pool.of(dataset.test)
    available = np.bincount(test_pool.labels, minlength=len(dataset.classes))
    clients = []
    for part in parts:
        counts = np.bincount(pool.labels[part], minlength=len(dataset.classes)) * (available > 0)
        has = counts > 0
        total = int((available[has] * counts.sum() / counts[has]).min()) if has.any() else 0
        own = draw_per_class(test_pool.labels, quotas_of(counts, total, most=available), rng)
        clients.append(_client(pool.by_domain(part), test_pool.by_domain(own)))
    return clients
