"""Takes a domain or some clients out of a partition, so that models are tested on what nobody trains on."""

from __future__ import annotations

import numpy as np

from bench.config.cell import Unseen
from bench.data.base import Dataset
from bench.data.class_draws import draw_per_class, quotas_of
from bench.data.clients import Client, Partition
from bench.data.partitions import PartitionSpec, make_partition
from bench.errors import UserError, nearest
from bench.text import counted

STREAM = 0x756E73  # "uns": keeps this draw apart from others made from the same seed


def divided(spec: PartitionSpec, unseen: Unseen | None, dataset: Dataset, seed: int) -> Partition:
    """The clients of a partition, less what is to be unseen; what the others have stays exactly as it was."""
    partition = make_partition(spec, dataset, seed)
    if unseen is None:
        return partition
    if unseen.domain is not None:
        return _without_domain(partition, unseen.domain, dataset)
    if unseen.clients is None:
        raise ValueError("neither a domain nor clients are to be unseen")
    return _without_clients(partition, unseen.clients, dataset, seed)


def check_domain(domain: str, domains: tuple[str, ...], dataset: str) -> None:
    """A UserError if a dataset with these domains cannot be left without this one."""
    if len(domains) < 2:
        raise UserError(
            f"unseen: a domain can be left out of two or more, and dataset '{dataset}' has one; leave out "
            "clients instead, such as unseen: {clients: 0.2}"
        )
    if domain not in domains:
        raise UserError(
            f"unseen.domain: dataset '{dataset}' has no domain '{domain}'; {nearest(domain, domains)}"
        )


def _without_domain(partition: Partition, domain: str, dataset: Dataset) -> Partition:
    """Clients lose their samples of the domain; a client that had no others is gone."""
    check_domain(domain, dataset.domains, dataset.name)
    reduced = [
        Client(
            next(iter(train)) if len(train) == 1 else None,
            train,
            {name: indices for name, indices in client.test.items() if name != domain},
        )
        for client in partition.clients
        if (train := {name: indices for name, indices in client.train.items() if name != domain})
    ]
    if not reduced:
        raise UserError(
            f"unseen: without domain '{domain}' no client is left; give other domains clients, too"
        )
    everything = Client(domain, {}, {domain: np.arange(len(dataset.test[domain]))})
    return Partition(tuple(reduced), (everything,))


def _without_clients(partition: Partition, wanted: float, dataset: Dataset, seed: int) -> Partition:
    clients = partition.clients
    number = wanted if isinstance(wanted, int) else max(1, int(wanted * len(clients) + 0.5))
    domains = [client.domain for client in clients]
    # Clients with samples of several domains form a single group.
    kinds: list[str | None] = [None] if None in domains else list(dict.fromkeys(domains))
    groups = np.array([0 if None in domains else kinds.index(domain) for domain in domains])
    members = np.bincount(groups)
    if len(kinds) > 1 and (members < 2).any():
        alone = kinds[int(members.argmin())]
        raise UserError(
            f"unseen.clients: domain '{alone}' has one client, which cannot both train and be "
            "left out; give it two, or leave out domains in turn with unseen: domain"
        )
    if not len(kinds) <= number <= len(clients) - len(kinds):
        of = "of every domain " if len(kinds) > 1 else ""
        raise UserError(
            f"unseen.clients = {wanted}: {of}at least one client must train and one must not; with "
            f"{counted(len(clients), 'client')} give a number from {len(kinds)} to "
            f"{len(clients) - len(kinds)}, or change the partition"
        )
    quotas = quotas_of(members, number, least=np.ones_like(members), most=members - 1)
    chosen = set(draw_per_class(groups, quotas, np.random.default_rng([seed, STREAM])).tolist())
    apart = Partition(
        tuple(client for place, client in enumerate(clients) if place not in chosen),
        tuple(client for place, client in enumerate(clients) if place in chosen),
    )
    for domain in dataset.domains:
        if domain not in apart.tested:
            raise UserError(
                f"unseen.clients = {wanted}: at seed {seed}, none of the clients that never train has test "
                f"samples of domain '{domain}'; raise it, or change the partition"
            )
    return apart
