"""The tables of a run, by the kind that its plan asks for."""

from collections.abc import Callable
from dataclasses import replace

from bench.errors import UserError, nearest
from bench.records.reader import Run
from reports.numbers.scores import RowKey, RowScores, reference_of, rows_of
from reports.numbers.swept import main_part
from reports.tables.ablation import ablation_table
from reports.tables.assembly import assemble, printed_beside
from reports.tables.columns import Column, averages, gains, measured
from reports.tables.notes import AVERAGE
from reports.tables.privacy import privacy_column, privacy_notes
from reports.tables.selection import selection_table
from reports.tables.summary import summary_table
from reports.tables.sweep import sweep_tables
from reports.tables.table import Footnote, Table
from reports.tables.tracks import LEGEND, tuned_here_column
from reports.tables.unseen import unseen_table
from reports.tables.wrapped import has_many_domains, wrapped_tables

OWN = "accuracy on each client's own test data, mean over the clients"

_KINDS: dict[str, Callable[[Run], list[Table]]] = {
    "domains": lambda run: [domain_table(run, variant) for variant in run.variants],
    "variants": lambda run: [variant_table(run)],
    "ablation": lambda run: [ablation_table(run)],
    "wrapped": lambda run: wrapped_and_domains(run),
    "unseen": lambda run: [unseen_table(run)],
}

_SETTINGS = {"ablation": "switches", "wrapped": "wrapper"}


def tables_of(run: Run) -> list[Table]:
    """The tables that the plan asks for, those of a sweep, and statistics and selection rules by variant."""
    if run.kind not in _KINDS:
        raise UserError(
            f"plan.json asks for the unknown table kind '{run.kind}'; {nearest(run.kind, _KINDS)}"
        )
    if (setting := _SETTINGS.get(run.kind)) and not getattr(run.layout, setting):
        raise UserError(f"plan.json has no table.{setting}; run the suite again to write the plan again")
    main = main_part(run)
    results = _with_note(_KINDS[run.kind](main.run), main.left_out)
    further = [summary_table(main.run, variant) for variant in main.run.variants]
    further += [selection_table(main.run, variant) for variant in main.run.variants]
    return [*results, *sweep_tables([run]), *_with_note(further, main.left_out)]


def _with_note(tables: list[Table], note: str) -> list[Table]:
    """The tables with a footnote, if there is anything to note."""
    if not note:
        return tables
    return [replace(table, footnotes=(*table.footnotes, Footnote(note))) for table in tables]


def wrapped_and_domains(run: Run) -> list[Table]:
    """Methods with and without a wrapper; many domains have a table of their own behind it."""
    tables = wrapped_tables(run)
    if len(run.variants) == 1 and has_many_domains(rows_of(run, run.variants[0])):
        tables.append(domain_table(run))
    return tables


def domain_table(run: Run, variant: str | None = None) -> Table:
    """Methods × domains with AVG, STD and Δ for one variant (the first unless named).

    Many domains stand behind these, so that the figures over all of them are seen first.
    """
    variant = run.variants[0] if variant is None else variant
    rows = rows_of(run, variant)
    domains = rows[0].domains
    avg = averages("AVG", rows)
    each = [measured(domain, rows, [row.on_domain(domain) for row in rows]) for domain in domains]
    columns = [avg]
    legend = f"AVG: {AVERAGE}"
    if len(domains) > 1:
        columns.append(measured("STD", rows, [row.spreads() for row in rows], lower_is_better=True))
        legend += " STD: standard deviation over the domains (ddof 0), lower is better."
    if reference := reference_of(rows):
        columns.append(gains("Δ", rows, reference))
        legend += f" Δ: AVG minus the AVG of {reference.label}, mean over the seeds that both have."
    if own := _own("Own", rows):
        columns.append(own)
        legend += f" Own: {OWN}."
    if private := privacy_column("ε", rows):
        columns.append(private)
    if tuned := tuned_here_column(rows, run.suite.name):
        columns.append(tuned)
        legend += f" {LEGEND}"
    beside, sources = printed_beside(run, rows, avg, "Printed", "Diff", variant)
    over_all = columns + beside
    ordered = over_all + each if has_many_domains(rows) else each + over_all
    remarks = [Footnote(legend), *privacy_notes(rows), *sources]
    return assemble(run, variant, rows, ordered, remarks)


def variant_table(run: Run) -> Table:
    """Methods × variants, the AVG in each."""
    columns: list[Column] = []
    sources: dict[Footnote, None] = {}
    rows: dict[RowKey, RowScores] = {}
    everything: list[RowScores] = []
    legend = f"Each column: AVG, {AVERAGE}"
    for variant in run.variants:
        in_variant = rows_of(run, variant)
        everything += in_variant
        for row in in_variant:
            rows.setdefault(row.key, row)
        avg = averages(variant, in_variant)
        beside, papers = printed_beside(
            run, in_variant, avg, f"{variant} printed", f"{variant} diff", variant
        )
        own = _own(f"{variant} own", in_variant)
        private = privacy_column(f"{variant} ε", in_variant)
        columns += [avg, *([own] if own else []), *([private] if private else []), *beside]
        sources.update(dict.fromkeys(papers))
    if any(row.personalised for row in everything):
        legend += f" Own: {OWN}."
    if tuned := tuned_here_column(list(rows.values()), run.suite.name):
        columns.append(tuned)
        legend += f" {LEGEND}"
    remarks = [Footnote(legend), *privacy_notes(everything), *sources]
    return assemble(run, "", list(rows.values()), columns, remarks, everything)


def _own(heading: str, rows: list[RowScores]) -> Column | None:
    personalised = [row for row in rows if row.personalised]
    return measured(heading, personalised, [row.own() for row in personalised]) if personalised else None
