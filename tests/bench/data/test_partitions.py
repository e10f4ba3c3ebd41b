from typing import Any

import numpy as np
import pytest

from bench.data import load_dataset
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
    partition_spec,
    split_validation,
)
from bench.errors import UserError
from tests.kit.data import labelled, real_data


def skewed_labels(size: int, classes: int = 10, seed: int = 0) -> np.ndarray:
    weights = np.arange(1, classes + 1)
    return np.random.default_rng(seed).choice(classes, size, p=weights / weights.sum())


@pytest.fixture(scope="module")
def one_domain() -> Dataset:
    return labelled("one", {"one": skewed_labels(5000)}, {"one": skewed_labels(1000, seed=1)})


@pytest.fixture(scope="module")
def four_domains() -> Dataset:
    """The sizes of Office-Caltech."""
    train = {"caltech": 899, "amazon": 768, "webcam": 237, "dslr": 127}
    test = {"caltech": 224, "amazon": 190, "webcam": 58, "dslr": 30}
    return labelled(
        "four",
        {domain: skewed_labels(size, seed=size) for domain, size in train.items()},
        {domain: skewed_labels(size, seed=size) for domain, size in test.items()},
    )


ALL = [
    ByDomain(clients=10, fraction=0.2),
    ByDomain(clients=7),
    Dirichlet(clients=8, beta=0.5),
    Dirichlet(clients=8, beta=0.05, min_per_class=1),
    Lds(beta=0.3),
    Iid(clients=9),
    Shards(clients=6, shards_per_client=2),
]


def used(partition: Partition, domain: str) -> np.ndarray:
    return np.concatenate([client.train.get(domain, np.empty(0, int)) for client in partition.clients])


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_disjoint_sorted_within_bounds_and_deterministic(spec: PartitionSpec, four_domains: Dataset) -> None:
    partition = make_partition(spec, four_domains, seed=3)
    for domain in four_domains.domains:
        members = used(partition, domain)
        assert len(np.unique(members)) == len(members)
        assert members.min(initial=0) >= 0
        assert members.max(initial=0) < len(four_domains.train[domain])
    for client in partition.clients:
        assert client.size > 0
        for split, part in ((four_domains.train, client.train), (four_domains.test, client.test)):
            for domain, indices in part.items():
                assert indices.dtype == np.int64
                assert (np.diff(indices) > 0).all()
                assert indices[-1] < len(split[domain])
        assert client.domain == (next(iter(client.train)) if len(client.train) == 1 else None)
    assert make_partition(spec, four_domains, seed=3).digest == partition.digest
    assert make_partition(spec, four_domains, seed=4).digest != partition.digest
    assert len(partition.digest) == 16


@pytest.mark.parametrize(
    "spec", [ByDomain(clients=7), Dirichlet(clients=8, beta=0.5), Iid(clients=9), Shards(clients=6)]
)
def test_complete(spec: PartitionSpec, four_domains: Dataset) -> None:
    partition = make_partition(spec, four_domains, seed=0)
    for domain, split in four_domains.train.items():
        assert sorted(used(partition, domain)) == list(range(len(split)))
    totals = np.bincount(np.concatenate([split.y for split in four_domains.train.values()]))
    assert (class_counts(partition, four_domains).sum(0) == totals).all()


def test_by_domain_sizes_of_the_papers(four_domains: Dataset) -> None:
    partition = make_partition(ByDomain(clients=10, fraction=0.2), four_domains, seed=0)
    sizes = {client.domain: client.size for client in partition.clients}
    assert sizes == {"caltech": 179, "amazon": 153, "webcam": 47, "dslr": 25}
    assert [client.domain for client in partition.clients] == (
        ["caltech"] * 3 + ["amazon"] * 3 + ["webcam"] * 2 + ["dslr"] * 2
    )
    for client in partition.clients:
        assert client.domain
        assert (client.test[client.domain] == np.arange(len(four_domains.test[client.domain]))).all()


def test_by_domain_on_the_real_office_caltech(tmp_path_factory: pytest.TempPathFactory) -> None:
    root = real_data("office_caltech10_224.zip")
    dataset = load_dataset("office_caltech", {"size": 8}, root, tmp_path_factory.mktemp("cache"))
    partition = make_partition(ByDomain(clients=10, fraction=0.2), dataset, seed=0)
    assert {client.domain: client.size for client in partition.clients} == {
        "caltech": 179,
        "amazon": 153,
        "webcam": 47,
        "dslr": 25,
    }
    counts = class_counts(partition, dataset)
    assert (counts > 0).all()


def test_by_domain_is_stratified(four_domains: Dataset) -> None:
    partition = make_partition(ByDomain(clients={"caltech": 4}, samples=100), four_domains, seed=0)
    share = np.bincount(four_domains.train["caltech"].y) / 899
    counts = class_counts(partition, four_domains)
    assert counts.sum(1).tolist() == [100] * 4
    assert (np.abs(counts - 100 * share) <= 1.25).all()
    assert (counts > 0).all()


def test_by_domain_gives_rare_classes_to_everyone_where_they_reach() -> None:
    labels = [0] * 90 + [1] * 4 + [2] * 2 + [3] * 4
    dataset = labelled("rare", {"d": labels}, {"d": labels})
    counts = class_counts(make_partition(ByDomain(clients=4, samples=10), dataset, seed=0), dataset)
    assert (counts[:, [0, 1, 3]] > 0).all()
    assert counts[:, 2].sum() == 2
    assert counts.sum(1).tolist() == [10] * 4


def test_by_domain_counts_a_fraction_without_rounding_dust() -> None:
    dataset = labelled("hundred", {"d": [0, 1] * 50}, {"d": [0, 1]})
    assert make_partition(ByDomain(clients=1, fraction=0.29), dataset, seed=0).clients[0].size == 29


def test_dirichlet_follows_beta(one_domain: Dataset) -> None:
    totals = np.bincount(one_domain.train["one"].y)

    def spread(beta: float) -> float:
        counts = class_counts(make_partition(Dirichlet(clients=10, beta=beta), one_domain, 0), one_domain)
        assert (counts.sum(0) == totals).all()
        return float((counts / totals).var(0).mean())

    # Var of one entry of Dirichlet(β·1_K) is (1/K)(1 − 1/K)/(Kβ + 1).
    assert spread(100.0) == pytest.approx(0.09 / 1001, rel=0.6)
    assert spread(0.5) == pytest.approx(0.09 / 6, rel=0.6)


def test_dirichlet_minimum_per_class(one_domain: Dataset) -> None:
    partition = make_partition(Dirichlet(clients=10, beta=0.01, min_per_class=2), one_domain, seed=0)
    assert class_counts(partition, one_domain).min() == 2


def test_dirichlet_minimum_size(one_domain: Dataset) -> None:
    partition = make_partition(Dirichlet(clients=10, beta=0.3, min_size=100), one_domain, seed=5)
    assert min(client.size for client in partition.clients) >= 100
    with pytest.raises(UserError, match="fewer than 400"):
        make_partition(Dirichlet(clients=10, beta=0.01, min_size=400), one_domain, seed=0)


@pytest.mark.parametrize("spec", [Dirichlet(clients=10, beta=0.2), Shards(clients=10)])
def test_own_test_set_has_the_train_proportions(spec: PartitionSpec, one_domain: Dataset) -> None:
    partition = make_partition(spec, one_domain, seed=1)
    for client, counts in zip(partition.clients, class_counts(partition, one_domain), strict=True):
        own = np.bincount(one_domain.test["one"].y[client.test["one"]], minlength=10)
        ideal = own.sum() * counts / counts.sum()
        assert (np.abs(own - ideal) <= 1).all()
        # As many as there are: one more of the scarcest class would not be available.
        available = np.bincount(one_domain.test["one"].y)
        assert (own + 1 >= available)[counts > 0].any()


def test_shards_give_few_classes() -> None:
    dataset = labelled("ten", {"d": np.repeat(np.arange(10), 100)}, {"d": np.repeat(np.arange(10), 20)})
    partition = make_partition(Shards(clients=10, shards_per_client=2), dataset, seed=0)
    counts = class_counts(partition, dataset)
    assert (counts.sum(1) == 100).all()
    assert set(np.unique(counts)) <= {0, 50, 100}


def test_lds_keeps_shares_that_add_up_over_domains() -> None:
    labels = np.repeat(np.arange(5), 1000)
    dataset = labelled("even", dict.fromkeys("abc", labels), dict.fromkeys("abc", labels))
    partition = make_partition(Lds(beta=0.1), dataset, seed=0)
    counts = class_counts(partition, dataset)
    assert [client.domain for client in partition.clients] == ["a", "b", "c"]
    # One Dirichlet vector a class, over domains of equal size: what stays adds up to one domain's worth.
    assert (np.abs(counts.sum(0) - 1000) <= 2).all()
    assert counts.max() > 500


def test_iid_sizes_and_whole_test(four_domains: Dataset) -> None:
    partition = make_partition(Iid(clients=9), four_domains, seed=0)
    sizes = [client.size for client in partition.clients]
    assert max(sizes) - min(sizes) <= 1
    assert all(sum(map(len, client.test.values())) == 224 + 190 + 58 + 30 for client in partition.clients)


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({}, "'name' is missing"),
        ({"name": "by_domian", "clients": 3}, "unknown name 'by_domian'; did you mean 'by_domain'"),
        ({"name": "dirichlet", "clients": 3, "bta": 1}, "unknown key 'bta'; did you mean 'beta'"),
        ({"name": "dirichlet", "clients": 3, "beta": 0}, "beta = 0"),
        ({"name": "dirichlet", "beta": 1}, "key 'clients' is missing"),
        ({"name": "iid", "clients": 0}, "clients = 0"),
        ({"name": "by_domain", "clients": "many"}, "clients = 'many'"),
        ({"name": "by_domain", "clients": {"a": -1}}, "clients = {'a': -1}"),
        ({"name": "by_domain", "clients": 2, "fraction": 2.0}, "fraction = 2.0"),
        ({"name": "by_domain", "clients": 2, "fraction": 0.5, "samples": 3}, "not both"),
    ],
)
def test_wrong_specifications(mapping: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match="partition") as caught:
        partition_spec(mapping)
    assert message in str(caught.value)


def test_specification_by_name() -> None:
    assert partition_spec({"name": "lds", "beta": 0.1}) == Lds(beta=0.1)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (ByDomain(clients={"dlsr": 1}), "unknown domain 'dlsr' in 'clients'; did you mean 'dslr'"),
        (ByDomain(clients={"dslr": 6}, fraction=0.2), "6 clients of domain 'dslr' need 150 of its 127"),
        (ByDomain(clients={"dslr": 200}), "200 clients of domain 'dslr'"),
        (ByDomain(clients={"dslr": 1}, fraction=0.001), "'dslr'"),
        (Iid(clients=3000), "3000 clients"),
        (Dirichlet(clients=3000, beta=1), "3000 clients"),
        (Dirichlet(clients=1000, beta=1, min_per_class=1), "min_per_class = 1 at 1000 clients"),
        (Shards(clients=1000, shards_per_client=3), "3000 shards"),
    ],
)
def test_what_a_dataset_cannot_give(spec: PartitionSpec, message: str, four_domains: Dataset) -> None:
    with pytest.raises(UserError) as caught:
        make_partition(spec, four_domains, seed=0)
    assert message in str(caught.value)


def test_split_validation_is_stratified() -> None:
    labels = np.repeat([0, 1, 2, 5], [50, 30, 19, 1])
    indices = np.arange(1000, 1100)
    train, held_out = split_validation(indices, labels, 0.2, np.random.default_rng(0))
    assert sorted([*train, *held_out]) == indices.tolist()
    assert np.bincount(labels[held_out - 1000], minlength=6).tolist() == [10, 6, 4, 0, 0, 0]
    assert (np.diff(train) > 0).all() and (np.diff(held_out) > 0).all()


def test_split_validation_never_empties_a_class() -> None:
    labels = np.array([0, 0, 1, 2])
    train, held_out = split_validation(np.arange(4), labels, 0.9, np.random.default_rng(0))
    assert set(labels[train]) == {0, 1, 2}
    assert len(held_out) == 1
