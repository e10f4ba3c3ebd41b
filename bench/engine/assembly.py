"""From a cell's configuration to the problem that hosts and server work on. The same in every process."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from bench.config.cell import CellConfig
from bench.data import load_dataset
from bench.data.base import Dataset, Split
from bench.data.cache import cache_root
from bench.data.clients import pooled_test
from bench.data.partitions import Client, Partition, partition_spec, split_validation
from bench.data.unseen import divided
from bench.encoders import encoder_spec
from bench.engine.attacks import Attack, flipped
from bench.engine.batch_norm import check_last_batches
from bench.engine.conditions import Conditions
from bench.engine.devices import autocast_dtype, best_device, sent
from bench.engine.preparation import recipe_of
from bench.engine.prepared_data import PreparedData, read_data
from bench.engine.problem import Problem
from bench.errors import UserError
from bench.models import model_spec
from bench.models.base import Context, seeded_model
from bench.suite.methods import METHODS
from bench.validation import validated, validated_union
from methods.base import FedAlgorithm
from methods.core.batches import Samples
from methods.core.optimisers import Optimiser
from methods.core.random import derive
from methods.core.task import Task, initial_tree
from methods.core.training import ONE_CLIENT
from methods.core.tree import Tree


@dataclass(frozen=True)
class Fingerprints:
    """What a result was computed from."""

    data_checksum: str
    partition_hash: str
    initial_weights: str
    data_notes: tuple[str, ...]
    """How the data differ from what was published, where only a part of them is there."""


@dataclass(frozen=True)
class Assembled:
    problem: Problem
    fingerprints: Fingerprints


def assemble(
    config: CellConfig,
    data_root: Path | None = None,
    clients: Collection[int] | None = None,
    gpus: float = 0.0,
    prepared: PreparedData | None = None,
) -> Assembled:
    """Build the problem of a cell; with `clients`, the training data of these alone.

    The data are read from the disk, unless they are given.
    """
    device = best_device(gpus)
    seed, training = config.seed, config.training
    data = prepared or read_data(config, data_root)
    # First, so that an impossible one is refused before embedding.
    partition = partition_of(config, data.dataset)
    if prepared is None and config.encoder is not None:
        data = data.embedded(config.encoder, str(device))
    dataset = data.dataset
    method = _method(config)
    task = _task(config, method, dataset, partition, device)
    _check(config, method, task)
    groups = [partition.clients] if method.pools_data else [[client] for client in partition.clients]
    wanted = {k: group for k, group in enumerate(groups) if clients is None or k in clients}
    attack = None if config.attackers is None else Attack.drawn(config.attackers, len(groups), seed)
    train, validation = {}, {}
    for k, group in wanted.items():
        kept, held_out = zip(
            *(_split(client, dataset, training.validation, seed) for client in group), strict=True
        )
        train[k] = _gather(dataset.train, kept, device)
        if attack is not None and attack.flips_labels_of(k):
            train[k] = flipped(train[k], task.classes)
        if training.validation > 0:
            validation[k] = _gather(dataset.train, held_out, device)
    check_last_batches(task, train, training.batch_size)
    tested = config.evaluation.test
    problem = Problem(
        task=task,
        method=method,
        epochs=training.epochs,
        batch_size=training.batch_size,
        steps=training.steps,
        schedule=training.schedule,
        rounds=training.rounds,
        recipe=recipe_of(training.augment, training.label_smoothing, task, _has_bytes(dataset)),
        attack=attack,
        train=train,
        validation=validation,
        test=_test_sets(dataset, partition, device) if tested else {},
        own_test={k: _own_test(group, device) for k, group in wanted.items() if tested and not config.unseen},
    )
    return Assembled(problem, _fingerprints(dataset, partition, task, data.notes))


def assemble_under(
    conditions: Conditions, config: CellConfig, clients: Collection[int] | None = None
) -> Assembled:
    """Build the problem of a cell where and from what these conditions say."""
    prepared = conditions.data.prepared(config) if conditions.data is not None else None
    return assemble(config, conditions.data_root, clients, conditions.gpus, prepared)


def assembled_like(config: CellConfig, other: Assembled) -> Assembled:
    """A cell that differs from another one in hyperparameters alone, with the same data and model."""
    method = _method(config)
    task = replace(other.problem.task, optimiser=_optimiser(config, method))
    _check(config, method, task)
    return replace(other, problem=replace(other.problem, task=task, method=method))


def pools_data(config: CellConfig) -> bool:
    """Whether all data are in one place, as if there were one client."""
    return METHODS.load(config.method.name).pools_data


def check_method(config: CellConfig, like: Task) -> None:
    """Whether the method of this cell can work on the task of another one with the same setting."""
    method = _method(config)
    _check(config, method, replace(like, optimiser=_optimiser(config, method)))


def checked_task(config: CellConfig, data: PreparedData) -> Task:
    """The task of a cell whose partition, model and method are possible; no sample is copied for it."""
    partition = partition_of(config, data.dataset)
    method = _method(config)
    task = _task(config, method, data.dataset, partition, best_device(0.0))
    _check(config, method, task)
    return task


def partition_of(config: CellConfig, dataset: Dataset) -> Partition:
    """Who has which samples of the dataset in a cell."""
    return divided(partition_spec(config.partition.model_dump()), config.unseen, dataset, config.seed)


def check_partition(config: CellConfig, data_root: Path | None) -> None:
    """A UserError if the data cannot be divided as the cell asks; nothing is trained or embedded for it."""
    partition_of(config, load_dataset(config.dataset.name, config.dataset.options, data_root))


def _method(config: CellConfig) -> FedAlgorithm:
    name = config.method.name
    return validated(METHODS.load(name), config.method.hyperparameters, f"method '{name}'")


def _check(config: CellConfig, method: FedAlgorithm, task: Task) -> None:
    try:
        method.check(task)
    except ValueError as error:
        raise UserError(f"method '{config.method.name}' {error}") from None


def _optimiser(config: CellConfig, method: FedAlgorithm) -> Optimiser:
    """The method's own, or else the suite's."""
    if method.client_optimiser is not None:
        return method.client_optimiser
    found: Optimiser = validated_union(Optimiser, config.training.optimiser, "training.optimiser")
    return found


def _task(
    config: CellConfig,
    method: FedAlgorithm,
    dataset: Dataset,
    partition: Partition,
    device: torch.device,
) -> Task:
    first = next(iter(dataset.train.values()))
    spec = model_spec(config.model.model_dump())
    encoder = encoder_spec(config.encoder.name) if config.encoder is not None else None
    context = Context(tuple(dataset.classes), encoder, cache_root(), dataset.vocabulary)
    model = seeded_model(spec, first.x.shape[1:], len(dataset.classes), config.seed, context).to(device)
    return Task(
        model=model,
        initial=initial_tree(model),
        classes=len(dataset.classes),
        clients=len(partition.clients),
        optimiser=_optimiser(config, method),
        seed=config.seed,
        domains=_domain_numbers(partition, dataset),
        input_shape=first.x.shape[1:],
        records_losses=config.evaluation.losses,
        rounds=config.training.rounds,
        mode=ONE_CLIENT._replace(precision=autocast_dtype(config.training.precision)),
    )


def _domain_numbers(partition: Partition, dataset: Dataset) -> tuple[int, ...]:
    own = [client.domain for client in partition.clients]
    return () if None in own else tuple(dataset.domains.index(str(domain)) for domain in own)


def _has_bytes(dataset: Dataset) -> bool:
    """Whether samples are pictures as they come from a file."""
    return next(iter(dataset.train.values())).x.dtype == np.uint8


def _split(
    client: Client, dataset: Dataset, share: float, seed: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """A client's positions to train on and to hold out, per domain."""
    if share == 0:
        return client.train, {}
    rng = np.random.default_rng(derive(seed, "validation"))
    kept, held_out = {}, {}
    for domain, positions in client.train.items():
        labels = dataset.train[domain].y[positions]
        kept[domain], held_out[domain] = split_validation(positions, labels, share, rng)
    return kept, held_out


def _gather(
    splits: Mapping[str, Split], parts: Collection[Mapping[str, np.ndarray]], device: torch.device
) -> Samples:
    pieces = [_tensors(splits[name], at, device) for part in parts for name, at in part.items()]
    return Samples(torch.cat([x for x, _ in pieces]), torch.cat([y for _, y in pieces]))


def _tensors(split: Split, positions: np.ndarray | None, device: torch.device) -> Samples:
    at = slice(None) if positions is None else positions
    x, y = torch.from_numpy(np.array(split.x[at])), torch.from_numpy(np.array(split.y[at]))
    if x.dtype == torch.float16:  # embeddings in a cache of half the size
        x = x.float()
    if x.dim() == 4:  # indexing keeps this layout, in which convolutions and pooling are far quicker
        x = x.contiguous(memory_format=torch.channels_last)
    return Samples(sent(x, device), sent(y, device))


def _test_sets(dataset: Dataset, partition: Partition, device: torch.device) -> dict[str, Samples]:
    """Domain → its whole test set, or where something is unseen, the part of it that belongs to that."""
    if not partition.unseen:
        return {domain: _tensors(split, None, device) for domain, split in dataset.test.items()}
    tested = partition.tested
    return {
        domain: _tensors(dataset.test[domain], tested[domain], device)
        for domain in dataset.domains
        if domain in tested
    }


def _own_test(group: Collection[Client], device: torch.device) -> dict[str, torch.Tensor]:
    return {domain: sent(torch.from_numpy(at), device) for domain, at in pooled_test(group).items()}


def _fingerprints(dataset: Dataset, partition: Partition, task: Task, notes: Sequence[str]) -> Fingerprints:
    weights = hashlib.sha256()
    frozen = {name: leaf for name, leaf in task.model.named_parameters() if not leaf.requires_grad}
    for name, leaf in (task.initial | Tree(frozen)).items():
        weights.update(name.encode())
        weights.update(leaf.cpu().contiguous().numpy().tobytes())
    return Fingerprints(dataset.checksum, partition.digest, weights.hexdigest()[:16], tuple(notes))
