"""`bench.compare`: what changed between two results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.api.observer import QUIET
from bench.api.results import Result, load
from bench.results.compare import compare as compare_runs
from bench.results.request import CompareRequest

if TYPE_CHECKING:
    import pandas as pd


def compare(first: Result | str | Path, second: Result | str | Path) -> pd.DataFrame:
    """One row per cell that both have: AVG of each in percent, their difference, and what else differs."""
    import pandas as pd

    before, after = (each if isinstance(each, Result) else load(each) for each in (first, second))
    rows = []
    for change in compare_runs(CompareRequest(before.records, after.records), QUIET).changes:
        differing = {**(change.settings or {}), **(change.provenance or {})}
        rows.append(
            {
                "cell": change.name,
                "first": change.averages[0],
                "second": change.averages[1],
                "difference": change.difference,
                "what differs": "; ".join(f"{key}: {old} → {new}" for key, (old, new) in differing.items()),
            }
        )
    return pd.DataFrame(rows, columns=["cell", "first", "second", "difference", "what differs"])
