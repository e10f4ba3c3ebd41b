"""Histories for cells of the tests, with everything that a round may record."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.kit.run_folders import Planned


def write_rounds(run: Path, cell: Planned, lines: Sequence[Mapping[str, Any]], end: str = "\n") -> None:
    """Replace a cell's history; `end` is what stands after its last line."""
    text = "\n".join(json.dumps(line) for line in lines)
    (run / cell.dir / "rounds.jsonl").write_text(text + end)


def rounds(
    levels: Mapping[str, float], number: int = 10, each: int = 500_000, **more: Any
) -> list[dict[str, Any]]:
    """Rounds that rise evenly to the final levels, `each` bytes in either direction, half a second each."""
    return [
        {
            "round": r,
            "test": {domain: level * r / number for domain, level in levels.items()},
            "bytes_up": each,
            "bytes_down": each,
            "seconds": 0.5,
            **more,
        }
        for r in range(1, number + 1)
    ]


def write_partition(run: Path, counts: Mapping[str, Sequence[int]]) -> None:
    """`DOMAIN NUMBER` → samples by class."""
    clients = [
        {"domain": name.split()[0], "name": name.split()[1], "counts": list(own)}
        for name, own in counts.items()
    ]
    classes = [f"class {place}" for place in range(len(next(iter(counts.values()))))]
    (run / "partition.json").write_text(json.dumps({"classes": classes, "clients": clients}))
