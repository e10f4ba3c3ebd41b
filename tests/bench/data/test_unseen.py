"""What nobody trains on: a domain, or some of the clients."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from bench.config.cell import Unseen
from bench.data.base import Dataset
from bench.data.partitions import (
    ByDomain,
    Dirichlet,
    Iid,
    Lds,
    Partition,
    PartitionSpec,
    Shards,
    make_partition,
)
from bench.data.unseen import divided
from bench.errors import UserError
from tests.kit.data import labelled

DOMAINS = ("photo", "art", "sketch")
SIZES = {"photo": (30, 9), "art": (24, 6), "sketch": (18, 12)}


@pytest.fixture(scope="module")
def three_domains() -> Dataset:
    """Classes 0, 1 and 2 in turn."""
    train, test = (
        {domain: [k % 3 for k in range(SIZES[domain][part])] for domain in DOMAINS} for part in (0, 1)
    )
    return labelled("three", train, test)


PARTITIONS = [
    ByDomain(clients=6),
    ByDomain(clients={"photo": 1, "art": 2, "sketch": 3}, samples=4),
    Lds(beta=1.0),
    Iid(clients=4),
    Dirichlet(clients=4, beta=0.5),
    Shards(clients=5),
]


def samples(partition: Partition, part: str = "train") -> list[dict[str, list[int]]]:
    return [
        {domain: indices.tolist() for domain, indices in getattr(client, part).items()}
        for client in partition.clients
    ]


@pytest.mark.parametrize("spec", PARTITIONS, ids=lambda spec: spec.name)
@pytest.mark.parametrize("domain", DOMAINS)
def test_no_client_has_samples_of_the_unseen_domain_and_the_others_have_what_they_had(
    three_domains: Dataset, spec: PartitionSpec, domain: str
) -> None:
    whole = make_partition(spec, three_domains, seed=3)
    partition = divided(spec, Unseen(domain=domain), three_domains, seed=3)
    for part in ("train", "test"):
        assert all(domain not in client for client in samples(partition, part))
    expected = [
        {name: indices for name, indices in client.items() if name != domain} for client in samples(whole)
    ]
    assert samples(partition) == [client for client in expected if client]
    assert {name: len(indices) for name, indices in partition.tested.items()} == {domain: SIZES[domain][1]}
    assert partition.digest != whole.digest


def test_a_domain_without_clients_can_be_the_unseen_one(three_domains: Dataset) -> None:
    spec = ByDomain(clients={"photo": 1, "art": 1})
    partition = divided(spec, Unseen(domain="sketch"), three_domains, seed=0)
    assert samples(partition) == samples(make_partition(spec, three_domains, seed=0))
    assert partition.tested["sketch"].tolist() == list(range(12))


def test_clients_left_with_one_domain_belong_to_it(three_domains: Dataset) -> None:
    two = Dataset(
        "two",
        three_domains.classes,
        {name: three_domains.train[name] for name in ("photo", "art")},
        {name: three_domains.test[name] for name in ("photo", "art")},
        "none",
    )
    partition = divided(Iid(clients=3), Unseen(domain="art"), two, seed=0)
    assert [client.domain for client in partition.clients] == ["photo"] * 3


@pytest.mark.parametrize(("wanted", "number"), [(3, 3), (0.34, 4), (0.25, 3), (8, 8)])
def test_unseen_clients_come_from_every_domain_in_proportion(
    three_domains: Dataset, wanted: float, number: int
) -> None:
    spec = ByDomain(clients={"photo": 6, "art": 3, "sketch": 2})
    partition = divided(spec, Unseen(clients=wanted), three_domains, seed=5)
    whole = make_partition(spec, three_domains, seed=5)
    assert len(partition.unseen) == number
    assert len(partition.clients) == 11 - number
    unseen = Counter(client.domain for client in partition.unseen)
    assert set(unseen) == set(DOMAINS)
    assert unseen["photo"] >= unseen["art"] >= unseen["sketch"]
    assert {client.domain for client in partition.clients} == set(DOMAINS)
    everyone = [id_of(client.train) for client in (*partition.clients, *partition.unseen)]
    assert sorted(everyone) == sorted(id_of(client.train) for client in whole.clients)


def id_of(part: dict[str, np.ndarray]) -> list[tuple[str, int]]:
    return [(domain, int(index)) for domain, indices in part.items() for index in indices]


def test_which_clients_are_unseen_depends_on_the_seed_alone(three_domains: Dataset) -> None:
    def unseen(seed: int) -> list[list[tuple[str, int]]]:
        spec, three = Iid(clients=8), Unseen(clients=3)
        return [id_of(client.train) for client in divided(spec, three, three_domains, seed).unseen]

    whole = make_partition(Iid(clients=8), three_domains, seed=1)
    numbers = [[id_of(client.train) for client in whole.clients].index(each) for each in unseen(1)]
    assert unseen(1) == unseen(1)
    choices = {tuple(numbers)}
    for seed in range(2, 6):
        whole = make_partition(Iid(clients=8), three_domains, seed)
        everyone = [id_of(client.train) for client in whole.clients]
        choices.add(tuple(everyone.index(each) for each in unseen(seed)))
    assert len(choices) > 1


def test_unseen_clients_are_tested_on_samples_like_their_own() -> None:
    """Two clients with one class each: the test samples are those of the class that nobody trains on."""
    dataset = labelled("one", {"one": [0] * 6 + [1] * 6}, {"one": [1, 0, 1, 0, 0]})
    for seed in range(4):
        partition = divided(Shards(clients=2, shards_per_client=1), Unseen(clients=1), dataset, seed)
        (trained,), (unseen,) = partition.clients, partition.unseen
        (seen_class,) = {int(label) for label in dataset.train["one"].y[trained.train["one"]]}
        (new_class,) = {int(label) for label in dataset.train["one"].y[unseen.train["one"]]}
        assert {seen_class, new_class} == {0, 1}
        expected = [place for place, label in enumerate([1, 0, 1, 0, 0]) if label == new_class]
        assert partition.tested["one"].tolist() == expected


@pytest.mark.parametrize(
    ("spec", "unseen", "sentence"),
    [
        (ByDomain(clients=6), Unseen(domain="scetch"), "has no domain 'scetch'; did you mean 'sketch'"),
        (ByDomain(clients={"art": 2}), Unseen(domain="art"), "without domain 'art' no client is left"),
        (
            ByDomain(clients=6),
            Unseen(clients=2),
            "of every domain at least one client must .* from 3 to 3",
        ),
        (ByDomain(clients=4), Unseen(clients=3), "domain 'art' has one client"),
        (Iid(clients=4), Unseen(clients=4), "at least one client must train .* from 1 to 3"),
    ],
)
def test_what_cannot_be_left_out_is_refused(
    three_domains: Dataset, spec: PartitionSpec, unseen: Unseen, sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        divided(spec, unseen, three_domains, seed=0)


def test_the_only_domain_cannot_be_left_out() -> None:
    dataset = labelled("one", {"one": [0, 1] * 6}, {"one": [1, 0]})
    with pytest.raises(UserError, match=r"dataset 'one' has one; leave out clients instead"):
        divided(Iid(clients=3), Unseen(domain="one"), dataset, seed=0)
