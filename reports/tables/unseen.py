"""The table of a suite that leaves out every domain in turn: methods × domain that no client had."""

from collections.abc import Sequence
from dataclasses import replace

from bench.records.reader import CellRecord, Run
from bench.records.schema import FinalScores
from reports.numbers.scores import RowScores, reference_of, rows_of
from reports.tables.assembly import assemble
from reports.tables.columns import averages, gains, measured
from reports.tables.notes import AVERAGE
from reports.tables.table import Footnote, Table


def unseen_table(run: Run) -> Table:
    """Accuracy on each domain of the models that were trained without it, with AVG and Δ."""
    in_variants = [row for variant in run.variants for row in rows_of(run, variant)]
    rows = _over_variants(run, in_variants)
    columns = [measured(domain, rows, [row.on_domain(domain) for row in rows]) for domain in run.domains]
    columns.append(averages("AVG", rows))
    legend = (
        "Each column: accuracy on the test set of a domain that no client has; where a method has no global "
        f"model, mean over the clients' models. AVG: {AVERAGE}"
    )
    if reference := reference_of(rows):
        columns.append(gains("Δ", rows, reference))
        legend += f" Δ: AVG minus the AVG of {reference.label}, mean over the seeds that both have."
    return assemble(run, "", rows, columns, [Footnote(legend)], in_variants)


def _over_variants(run: Run, in_variants: Sequence[RowScores]) -> list[RowScores]:
    """One row for each method, whose cells have the accuracies of all cells of a seed."""
    cells: dict[tuple[str, str], dict[int, list[CellRecord]]] = {}
    for row in in_variants:
        for cell in row.cells:
            cells.setdefault(row.key, {}).setdefault(cell.seed, []).append(cell)
    default = {row.key for row in in_variants if row.default}
    return [
        RowScores(*key, run.domains, tuple(map(_united, by_seed.values())), default=key in default)
        for key, by_seed in cells.items()
    ]


def _united(cells: Sequence[CellRecord]) -> CellRecord:
    """The cells of a row and seed as one that was tested on what each of them was tested on."""
    done = [cell for cell in cells if cell.result is not None]
    if not done or done[0].result is None:
        return cells[0]
    test = {
        domain: cell.accuracy(domain)
        for cell in done
        for domain in (cell.result and cell.result.final.test) or ()
    }
    # Without rounds: whichever round counts has been chosen here. Predictions are those of one cell alone.
    result = done[0].result.model_copy(update={"final": FinalScores(test=test)})
    return replace(done[0], variant="", rounds=[], result=result, predictions_file=None)
