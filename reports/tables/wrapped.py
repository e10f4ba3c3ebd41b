"""Methods with and without a wrapper side by side, and the gain of the wrapper."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bench.records.reader import Run
from bench.records.schema import DEFAULT_ROW
from reports.numbers.scores import BySeed, RowKey, RowScores, rows_of
from reports.numbers.statistics import comparisons
from reports.tables.assembly import assemble, printed_averages
from reports.tables.columns import DIFFERS, Column, gain, measured, printed
from reports.tables.notes import AVERAGE
from reports.tables.table import Footnote, Table

PLAIN, GAIN = "plain", "gain"
MANY_DOMAINS = 8
"""With more domains than this, three columns for each of them are too many to read."""


@dataclass(frozen=True)
class Family:
    """A base method and the rows that wrap it, each under the name of its column."""

    plain: RowScores | None
    wrapped: Mapping[str, RowScores]

    @property
    def row(self) -> RowScores:
        """The row that names the family: the base method, or a wrapped one if the base did not run."""
        return self.plain or next(iter(self.wrapped.values()))


def wrapped_tables(run: Run) -> list[Table]:
    """Base methods × domains with AVG, or × variants where there are several: plain, wrapped, gain.

    With many domains, AVG alone.
    """
    wrapper = run.layout.wrapper or ""
    described: list[RowScores] = []
    rows: dict[RowKey, RowScores] = {}
    columns: list[Column] = []
    sources: dict[Footnote, None] = {}
    for variant in run.variants:
        in_variant = rows_of(run, variant)
        families = families_of(in_variant, wrapper)
        described += in_variant
        for family in families:
            rows.setdefault(family.row.key, family.row)
        if len(run.variants) == 1 and not has_many_domains(in_variant):
            for domain in in_variant[0].domains:
                columns += _side_by_side(domain, families, partial(RowScores.on_domain, domain=domain))
        group = variant or "AVG"
        columns += _side_by_side(group, families, RowScores.averages, tested=True)
        for name, having in _named(families).items():
            numbers, papers = printed_averages(run, having, variant)
            if numbers:
                columns.append(replace(printed(f"{name} printed", numbers), group=group))
            sources.update(dict.fromkeys(papers))
    legend = (
        f"{PLAIN}: without {wrapper}; {GAIN}: with minus without, mean ± sample std over the seeds that both "
        f"have. AVG: {AVERAGE}"
    )
    without = f"the same method without {wrapper}"
    remarks = [Footnote(legend), *sources]
    return [assemble(run, "", list(rows.values()), columns, remarks, described, without)]


def has_many_domains(rows: Sequence[RowScores]) -> bool:
    return len(rows[0].domains) > MANY_DOMAINS


def families_of(rows: Sequence[RowScores], wrapper: str) -> list[Family]:
    """`fedprox` and every `WRAPPER+fedprox`, in the order of the plan; default rows are families apart."""
    prefix = f"{wrapper}+"
    bases = dict.fromkeys((row.method.removeprefix(prefix), row.default) for row in rows)
    families = []
    for base, default in bases:
        plain = [row for row in rows if (row.method, row.default) == (base, default)]
        wrapped = [row for row in rows if (row.method, row.default) == (prefix + base, default)]
        # A default row that equals the tuned one is not there; the tuned one's name will do.
        labels = [row.label for row in plain or rows if row.method == base]
        shown = labels[0].removesuffix(DEFAULT_ROW) if labels else base
        named: dict[str, RowScores] = {}
        for row in wrapped:
            name = _column_name(row.label.removesuffix(DEFAULT_ROW), shown, wrapper)
            named[row.label if name in named else name] = row
        families.append(Family(plain[0] if plain else None, named))
        families += [Family(other, {}) for other in plain[1:]]
    return families


def _column_name(label: str, base: str, wrapper: str) -> str:
    """`GGEUR+FedProx` is GGEUR's column; `step 1` and `GGEUR+FedProx, step 1` have columns of their own."""
    return " ".join(label.replace(base, "").strip(" +,()").replace("+,", ",").split()) or wrapper


def _side_by_side(
    group: str,
    families: Sequence[Family],
    values: Callable[[RowScores], BySeed],
    tested: bool = False,
) -> list[Column]:
    """The plain column, then each wrapped one with its gain, which is tested where asked for."""
    named = _named(families)
    columns = []
    for name, having in named.items():
        columns.append(_measured(name, group, having, values))
        if name == PLAIN:
            continue
        pairs = {key: (row, named[PLAIN][key]) for key, row in having.items() if key in named[PLAIN]}
        gains = {key: gain(ours, theirs, values) for key, (ours, theirs) in pairs.items()}
        if tested:
            found = comparisons([(values(ours), values(theirs)) for ours, theirs in pairs.values()])
            for key, comparison in zip(pairs, found, strict=True):
                if comparison and not gains[key].missing:
                    signs = (DIFFERS,) if comparison.significant else ()
                    gains[key] = replace(gains[key], p=comparison.p, signs=(*gains[key].signs, *signs))
        heading = GAIN if len(named) == 2 else f"{name} {GAIN}"
        columns.append(Column(heading, gains, group))
    return columns


def _named(families: Sequence[Family]) -> dict[str, dict[RowKey, RowScores]]:
    """Name of a measured column → its rows by key; the plain column comes first."""
    names = dict.fromkeys(name for family in families for name in family.wrapped)
    wrapped = {
        name: {family.row.key: family.wrapped[name] for family in families if name in family.wrapped}
        for name in names
    }
    return {PLAIN: {family.row.key: family.plain for family in families if family.plain}, **wrapped}


def _measured(
    heading: str,
    group: str,
    rows: Mapping[RowKey, RowScores],
    values: Callable[[RowScores], BySeed],
) -> Column:
    here = list(rows.values())
    column = measured(heading, here, [values(row) for row in here])
    return Column(heading, {key: column.entries[row.key] for key, row in rows.items()}, group)
