"""From the records of a run to its tables: pure functions."""

from collections.abc import Sequence

from bench.errors import UserError, nearest
from reports.caption import AS_PUBLISHED, caption, footnotes_for
from reports.columns import Column, RowKey, averages, differences, key_of, measured, printed
from reports.published import Printed, printed_numbers
from reports.records import Run
from reports.scores import BOUNDS, Entry, by_bounds, entries
from reports.table import Cell, Footnote, Row, Table

REFERENCE = "fedavg"
NOT_CONCERNED = Cell("")


def tables_of(run: Run) -> list[Table]:
    """The tables that the plan asks for."""
    kinds = {
        "domains": lambda: [domain_table(run, variant) for variant in run.variants],
        "variants": lambda: [variant_table(run)],
    }
    if run.kind not in kinds:
        raise UserError(f"plan.json asks for the table kind '{run.kind}': {nearest(run.kind, kinds)}")
    return kinds[run.kind]()


def domain_table(run: Run, variant: str | None = None) -> Table:
    """Methods × domains with AVG, STD and Δ for one variant (the first unless named)."""
    variant = run.variants[0] if variant is None else variant
    rows = entries(run, variant)
    domains = rows[0].domains
    avg = averages("AVG", rows)
    columns = [measured(domain, rows, [row.on_domain(domain) for row in rows]) for domain in domains]
    columns.append(avg)
    legend = "AVG: unweighted mean over the domains, of the seeds that have them all."
    if len(domains) > 1:
        columns.append(measured("STD", rows, [row.spreads() for row in rows], lower_is_better=True))
        legend += " STD: standard deviation over the domains (ddof 0), lower is better."
    if reference := next((key_of(row) for row in rows if row.method == REFERENCE), None):
        base = avg.cells[reference].mean
        columns.append(differences("Δ", avg, {key_of(row): base for row in rows}))
        legend += f" Δ: AVG minus that of {reference[1]}."
    if personalised := [row for row in rows if row.personalised]:
        columns.append(measured("Own", personalised, [row.own() for row in personalised]))
        legend += " Own: mean over the clients of accuracy on their own test data."
    beside, sources = _beside(run, rows, avg, "Printed", "Diff", variant)
    return _assemble(run, variant, rows, columns + beside, [Footnote(legend), *sources])


def variant_table(run: Run) -> Table:
    """Methods × variants, the AVG in each."""
    columns: list[Column] = []
    sources: dict[Footnote, None] = {}
    rows: dict[RowKey, Entry] = {}
    everything: list[Entry] = []
    for variant in run.variants:
        in_variant = entries(run, variant)
        everything += in_variant
        for row in in_variant:
            rows.setdefault(key_of(row), row)
        avg = averages(variant, in_variant)
        beside, papers = _beside(run, in_variant, avg, f"{variant} printed", f"{variant} diff", variant)
        columns += [avg, *beside]
        sources.update(dict.fromkeys(papers))
    legend = Footnote(
        "Each column: AVG, the unweighted mean over the domains, of the seeds that have them all."
    )
    return _assemble(run, "", list(rows.values()), columns, [legend, *sources], everything)


def _beside(
    run: Run, rows: Sequence[Entry], avg: Column, heading: str, difference: str, variant: str
) -> tuple[list[Column], list[Footnote]]:
    """The columns with printed numbers and the difference to them, if the suite has any, and their source."""
    numbers: dict[RowKey, float] = {}
    papers: dict[str, str] = {}
    for row in rows:
        known = printed_numbers(run.suite.name, row.method)
        value = _printed_average(known, variant, row.domains) if known else None
        if known and value is not None:
            numbers[key_of(row)] = value
            papers[known.paper] = known.trust
    if not numbers:
        return [], []
    sources = [
        Footnote(f"Printed: {paper} ({trust}). Difference: ours minus printed, in points.")
        for paper, trust in papers.items()
    ]
    return [printed(heading, numbers), differences(difference, avg, numbers)], sources


def _printed_average(known: Printed, variant: str, domains: Sequence[str]) -> float | None:
    """The printed AVG for a variant (`β=0.1` is a paper's column `0.1`), or of the whole suite."""
    if variant:
        return known.columns.get(variant, known.columns.get(variant.rpartition("=")[2]))
    same_domains = not known.columns or set(known.columns) == set(domains)
    return known.average if same_domains else None


def _assemble(
    run: Run,
    variant: str,
    rows: Sequence[Entry],
    columns: Sequence[Column],
    remarks: Sequence[Footnote],
    all_entries: Sequence[Entry] = (),
) -> Table:
    """Put rows, caption and footnotes together; `all_entries` if the table covers more than `rows` hold."""
    described = all_entries or rows
    as_published = {key_of(entry) for entry in described if entry.as_published}
    sections = tuple(
        tuple(_row(entry, columns, key_of(entry) in as_published) for entry in section)
        for section in by_bounds(rows)
    )
    text, mixed = caption(run, variant, described)
    shown = (row for section in sections for row in section)
    return Table(
        suite=run.suite.name,
        variant=variant,
        caption=text,
        columns=tuple(column.heading for column in columns),
        sections=sections,
        footnotes=(*remarks, *footnotes_for(described, shown), *mixed),
    )


def _row(entry: Entry, columns: Sequence[Column], as_published: bool) -> Row:
    return Row(
        method=entry.method,
        label=entry.label,
        cells=tuple(column.cells.get(key_of(entry), NOT_CONCERNED) for column in columns),
        bound=entry.method in BOUNDS,
        signs=(AS_PUBLISHED,) if as_published else (),
    )
