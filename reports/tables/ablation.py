"""The table of an ablation: ticks for the parts that are in use, then the AVG in each variant."""

from collections.abc import Mapping, Sequence

from bench.errors import UserError, nearest
from bench.records.reader import Run
from reports.numbers.scores import RowKey, RowScores, rows_of
from reports.tables.assembly import assemble, printed_beside
from reports.tables.columns import Column, averages
from reports.tables.notes import AVERAGE
from reports.tables.table import Entry, Footnote, Table

ON, OFF = Entry("✓", mean=1.0), Entry("", mean=0.0)


def ablation_table(run: Run) -> Table:
    """Rows × (switches, then variants); the switches are hyperparameters that the plan names."""
    switches: Mapping[str, str] = run.layout.switches or {}
    rows: dict[RowKey, RowScores] = {}
    everything: list[RowScores] = []
    columns: list[Column] = []
    sources: dict[Footnote, None] = {}
    for variant in run.variants:
        in_variant = rows_of(run, variant)
        everything += in_variant
        for row in in_variant:
            rows[row.key] = row if row.hyperparameters else rows.get(row.key, row)
        heading = variant or "AVG"
        avg = averages(heading, in_variant)
        beside, papers = printed_beside(
            run, in_variant, avg, f"{heading} printed", f"{heading} diff", variant
        )
        columns += [avg, *beside]
        sources.update(dict.fromkeys(papers))
    ticks = [_ticks(name, heading, list(rows.values())) for name, heading in switches.items()]
    legend = Footnote(f"✓: the part is in use. Each column: AVG, {AVERAGE}")
    return assemble(run, "", list(rows.values()), ticks + columns, [legend, *sources], everything)


def _ticks(name: str, heading: str, rows: Sequence[RowScores]) -> Column:
    """A column of ticks; empty for a row that has no such switch or has not begun."""
    begun = [row for row in rows if row.hyperparameters]
    entries = {
        row.key: ON if row.hyperparameters[name] else OFF for row in begun if name in row.hyperparameters
    }
    if begun and not entries:
        known = {switch for row in begun for switch in row.hyperparameters}
        raise UserError(
            f"plan.json: table.switches names '{name}', which no row has as a hyperparameter; "
            f"{nearest(name, known)}"
        )
    return Column(heading, entries)
