"""Leaves on disk who has which data, so that reports can show it without the data."""

from __future__ import annotations

from pathlib import Path

from bench.data import load_dataset
from bench.data.partitions import class_counts, make_partition, partition_spec
from bench.records.files import write_json
from bench.suite.planning import PlannedCell


def write_partition(run_directory: Path, cell: PlannedCell, data_root: Path | None) -> None:
    """partition.json: the clients of a cell's setting and seed, and their training samples by class."""
    options = dict(cell.config["dataset"])
    dataset = load_dataset(options.pop("name"), options, data_root)
    partition = make_partition(partition_spec(cell.config["partition"]), dataset, cell.seed)
    clients = zip(partition.clients, class_counts(partition, dataset).tolist(), strict=True)
    write_json(
        run_directory / "partition.json",
        {
            "setting": " ".join(filter(None, (cell.variant, f"seed {cell.seed}"))),
            "classes": list(dataset.classes),
            "clients": [
                {"name": str(number), "domain": client.domain or "mixed", "counts": counts}
                for number, (client, counts) in enumerate(clients)
            ],
        },
    )
