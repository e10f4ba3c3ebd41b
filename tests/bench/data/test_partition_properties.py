"""What every partition promises, for datasets, options and seeds that hypothesis makes up."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bench.data.base import Dataset
from bench.data.partitions import (
    ByDomain,
    Dirichlet,
    Iid,
    Lds,
    Partition,
    PartitionSpec,
    Shards,
    class_counts,
    make_partition,
    split_validation,
)
from bench.errors import UserError
from tests.kit.data import labelled

CLASSES = 4
QUICK = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.filter_too_much]
)


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    """One to three domains of up to 60 train samples; classes may be missing from a domain."""
    labels = st.lists(st.integers(0, CLASSES - 1), min_size=1, max_size=60)
    domains = draw(st.integers(1, 3))
    train = {f"d{number}": draw(labels) for number in range(domains)}
    train["d0"] = [*train["d0"], CLASSES - 1]  # so that the number of classes is fixed
    return labelled("made up", train, {domain: draw(labels) for domain in train})


clients = st.integers(1, 8)
betas = st.floats(0.05, 50)
COMPLETE: dict[str, st.SearchStrategy[PartitionSpec]] = {
    "by_domain": st.builds(ByDomain, clients=clients),
    "dirichlet": st.builds(Dirichlet, clients=clients, beta=betas),
    "iid": st.builds(Iid, clients=clients),
    "shards": st.builds(Shards, clients=clients, shards_per_client=st.integers(1, 3)),
}
PARTIAL: dict[str, st.SearchStrategy[PartitionSpec]] = {
    "by_domain": st.builds(ByDomain, clients=clients, fraction=st.floats(0.01, 1)),
    "lds": st.builds(Lds, beta=betas),
}
ALL = {**{f"complete {name}": spec for name, spec in COMPLETE.items()}, **PARTIAL}


def divided(spec: PartitionSpec, dataset: Dataset, seed: int = 0) -> Partition:
    """The partition; examples that ask for more than the dataset has are not looked at."""
    try:
        return make_partition(spec, dataset, seed)
    except UserError:
        assume(False)
        raise


def members(partition: Partition, domain: str) -> list[int]:
    return [int(i) for client in partition.clients for i in client.train.get(domain, ())]


def test_every_kind_is_covered() -> None:
    assert {*COMPLETE, *PARTIAL} == {kind.model_fields["name"].default for kind in get_args(PartitionSpec)}


@pytest.mark.parametrize("name", ALL)
@QUICK
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_no_sample_is_given_twice_and_no_client_is_empty(name: str, data: st.DataObject, seed: int) -> None:
    dataset = data.draw(datasets())
    partition = divided(data.draw(ALL[name]), dataset, seed)
    for domain, split in dataset.train.items():
        found = members(partition, domain)
        assert len(set(found)) == len(found)
        assert set(found) <= set(range(len(split)))
    assert all(client.size > 0 for client in partition.clients)
    for client in partition.clients:
        assert all((np.diff(own) > 0).all() for own in (*client.train.values(), *client.test.values()))
        for domain, own in client.test.items():
            assert set(own.tolist()) <= set(range(len(dataset.test[domain])))


@pytest.mark.parametrize("name", COMPLETE)
@QUICK
@given(data=st.data())
def test_complete_kinds_give_every_sample_to_one_client(name: str, data: st.DataObject) -> None:
    dataset = data.draw(datasets())
    spec = data.draw(COMPLETE[name])
    partition = divided(spec, dataset)
    for domain, split in dataset.train.items():
        served = not isinstance(spec, ByDomain) or spec.per_domain(dataset.domains)[domain] > 0
        assert sorted(members(partition, domain)) == (list(range(len(split))) if served else [])


@pytest.mark.parametrize("name", ALL)
@QUICK
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_the_seed_decides_everything(name: str, data: st.DataObject, seed: int) -> None:
    dataset, spec = data.draw(datasets()), data.draw(ALL[name])
    np.random.seed(data.draw(st.integers(0, 9)))  # the global generator has no influence
    assert divided(spec, dataset, seed).digest == divided(spec, dataset, seed).digest


@QUICK
@given(dataset=datasets(), number=clients, beta=betas, size=st.integers(1, 8), per_class=st.integers(0, 2))
def test_dirichlet_keeps_its_minimum_sizes(
    dataset: Dataset, number: int, beta: float, size: int, per_class: int
) -> None:
    spec = Dirichlet(clients=number, beta=beta, min_size=size, min_per_class=per_class)
    counts = class_counts(divided(spec, dataset), dataset)
    assert counts.shape == (number, CLASSES)
    assert counts.sum(1).min() >= size
    assert counts.min() >= per_class


@QUICK
@given(dataset=datasets(), number=clients, size=st.integers(1, 20))
def test_by_domain_gives_clients_what_they_ask_for(dataset: Dataset, number: int, size: int) -> None:
    partition = divided(ByDomain(clients=number, samples=size), dataset)
    assert [client.size for client in partition.clients] == [size] * number
    assert all(list(client.train) == [client.domain] for client in partition.clients)


@QUICK
@given(dataset=datasets(), number=clients, per_client=st.integers(1, 3))
def test_equal_sizes_differ_by_little(dataset: Dataset, number: int, per_client: int) -> None:
    dealt = [client.size for client in divided(Iid(clients=number), dataset).clients]
    assert max(dealt) - min(dealt) <= 1
    shards = divided(Shards(clients=number, shards_per_client=per_client), dataset)
    sizes = [client.size for client in shards.clients]
    assert max(sizes) - min(sizes) <= per_client


@QUICK
@given(
    labels=st.lists(st.integers(0, CLASSES - 1), min_size=1, max_size=60),
    fraction=st.floats(0, 0.99),
    seed=st.integers(0, 2**32),
)
def test_a_hold_out_is_disjoint_and_leaves_every_class(labels: list[int], fraction: float, seed: int) -> None:
    y, indices = np.array(labels), np.arange(len(labels)) * 3
    kept, held_out = split_validation(indices, y, fraction, np.random.default_rng(seed))
    assert sorted([*kept, *held_out]) == indices.tolist()
    assert set(y[kept // 3]) == set(labels)
    assert len(held_out) <= int(fraction * len(labels) + 0.5)
