"""`bench.compare`: what changed between two results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.api.results import Result, load

if TYPE_CHECKING:
    import pandas as pd


def compare(first: Result | str | Path, second: Result | str | Path) -> pd.DataFrame:
    """One row per cell that both have: AVG of each in percent, their difference, and what else differs."""
    import pandas as pd

    from reports.combine.compare import compare_runs

    runs = [each.records if isinstance(each, Result) else load(each).records for each in (first, second)]
    rows = []
    for change in compare_runs(*runs).changes:
        before, after = change.averages
        differing = {**(change.settings or {}), **(change.provenance or {})}
        rows.append(
            {
                "cell": change.name,
                "first": before,
                "second": after,
                "difference": change.difference,
                "what differs": "; ".join(f"{key}: {old} → {new}" for key, (old, new) in differing.items()),
            }
        )
    return pd.DataFrame(rows, columns=["cell", "first", "second", "difference", "what differs"])
