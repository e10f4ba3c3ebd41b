"""Records who has which data, so that reports can show it without the data."""

from __future__ import annotations

from pathlib import Path

from bench.config.cell import CellConfig
from bench.data import load_dataset
from bench.data.partitions import Partition, class_counts
from bench.engine.assembly import partition_of
from bench.records.schema import ClientShare, PartitionRecord, row_name
from bench.text import counted


def partition_record(config: CellConfig, data_root: Path | None) -> PartitionRecord:
    """The clients of a cell's setting and seed, and their training samples by class."""
    dataset = load_dataset(config.dataset.name, config.dataset.options, data_root)
    partition = partition_of(config, dataset)
    clients = zip(partition.clients, class_counts(partition, dataset).tolist(), strict=True)
    return PartitionRecord(
        setting=row_name(_left_out(config, partition), config.variant, config.seed),
        classes=tuple(dataset.classes),
        clients=tuple(
            ClientShare(name=str(number), domain=client.domain or "mixed", counts=tuple(counts))
            for number, (client, counts) in enumerate(clients)
        ),
    )


def _left_out(config: CellConfig, partition: Partition) -> str:
    """What nobody trains on, where the variant's name does not say it."""
    if config.unseen is None or config.variant:
        return ""
    if config.unseen.domain is not None:
        return f"without {config.unseen.domain}"
    return f"{counted(len(partition.unseen), 'client')} unseen"
