"""The tables of a sweep: every combination with its AVG, and how much each swept key matters."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bench.records.reader import Run
from bench.text import counted
from reports.numbers.designs import Combination, Design, best_of, place_names, problem_of, swept_designs
from reports.numbers.importance import FEWEST_POINTS, Importance, importance
from reports.numbers.sensitivity import key_names
from reports.numbers.swept import is_of_the_problem, settings_in_words
from reports.tables.columns import summary
from reports.tables.notes import seed_notes
from reports.tables.table import Entry, Footnote, Row, Table, number, signed_number

NAME = "sweep"
IMPORTANCE = "importance"
DEFAULT, BEST = "◇", "★"
MOST_LINES = 40
"""Longer tables show only the default and the best; the CSV file has all lines."""
EMPTY = Entry("")
HIGHER, SEEDS = "3 or more keys", "Seeds"


@dataclass(frozen=True)
class _Line:
    row: Row
    matters: bool
    """Whether a long table shows the line too."""


def sweep_tables(runs: Sequence[Run]) -> list[Table]:
    """The combinations and the importances over all of the runs; nothing where nothing was swept."""
    designs = [design for run in runs for design in swept_designs(run)]
    if not designs:
        return []
    return [combination_table(runs, designs), *importance_tables(runs, designs)]


def combination_table(runs: Sequence[Run], designs: Sequence[Design]) -> Table:
    """One section per row and place, one line per combination."""
    names = key_names(dict.fromkeys(key for design in designs for key in design.keys))
    places = place_names([design.place for design in designs])
    sections = [list(_lines(design, places[design.place])) for design in designs]
    total = sum(map(len, sections))
    hidden: list[Row] = []
    if total > MOST_LINES:
        hidden = [line.row for section in sections for line in section if not line.matters]
        sections = [[line for line in section if line.matters] for section in sections]
    rows = tuple(tuple(line.row for line in section) for section in sections if section)
    keys = ", ".join(key if name == key else f"{key} ({name})" for key, name in names.items())
    shown = [row for section in rows for row in section]
    return Table(
        suite=" and ".join(dict.fromkeys(run.suite.name for run in runs)),
        variant="",
        caption=f"Sweep of {_suites(runs)} over {keys or 'datasets'}: AVG in percent, mean ± sample std over "
        f"seeds. {BEST} is the best of the combinations on the test sets. That is not a selection rule: it "
        "shows how much the choice matters, and hyperparameters should be chosen by `bench tune`.",
        columns=("AVG", "Δ default"),
        sections=rows,
        footnotes=(*_remarks(designs, shown, total, len(hidden)), *seed_notes(shown)),
        name=NAME,
        hidden=tuple(hidden),
    )


def importance_tables(runs: Sequence[Run], designs: Sequence[Design]) -> list[Table]:
    """One line per row and place with enough combinations; no table without any."""
    found = [each for design in designs if (each := importance(design))]
    if not found:
        return []
    names = key_names(dict.fromkeys(key for each in found for key in each.design.keys))
    places = place_names([design.place for design in designs])
    effects = sorted(dict.fromkeys(effect for each in found for effect in each.shares), key=len)
    further = [HIGHER] if any(each.higher is not None for each in found) else []
    further += [SEEDS] if any(each.noise is not None for each in found) else []
    rows = []
    for each in found:
        others = {HIGHER: each.higher, SEEDS: each.noise}
        shares = [*(each.shares.get(effect) for effect in effects), *(others[name] for name in further)]
        label = " ".join(filter(None, (each.design.row, places[each.design.place])))
        rows.append(Row(each.design.method, label, tuple(map(_share, shares))))
    table = Table(
        suite=" and ".join(dict.fromkeys(run.suite.name for run in runs)),
        variant="",
        caption=f"Importance of what was swept in {_suites(runs)}: share of the variance of AVG over the "
        "combinations, in percent.",
        columns=tuple(" × ".join(names[key] for key in effect) for effect in effects) + tuple(further),
        sections=(tuple(rows),),
        footnotes=tuple(_estimators(found, rows)),
        name=IMPORTANCE,
    )
    return [table]


def _lines(design: Design, place: str) -> Iterator[_Line]:
    means = {at: mean for at, point in design.points.items() if (mean := point.mean) is not None}
    best = best_of(design.keys, means)
    problems = [problem_of(design.keys, at) for at in design.points]
    order = list(dict.fromkeys(problems))
    for at in sorted(design.points, key=lambda at: order.index(problem_of(design.keys, at))):
        point = design.points[at]
        values = settings_in_words(dict(zip(design.keys, at, strict=True)))
        alone = problems.count(problem_of(design.keys, at)) == 1
        default = not alone and _default_at(design, at) == at
        entry = summary(point.by_seed, point.planned)
        signs = (*([DEFAULT] if default else []), *([BEST] if at in best else []))
        row = Row(
            method=design.method,
            label=" ".join(filter(None, (design.row, place, values))),
            entries=(replace(entry, mark="best") if at in best else entry, _gain(design, at, alone)),
            signs=signs,
        )
        yield _Line(row, matters=alone or bool(signs))


def _default_at(design: Design, at: Combination) -> Combination:
    """The combination with the same values of the problem and the defaults of everything else."""
    defaults = design.defaults or {}
    return tuple(
        value if is_of_the_problem(key) else defaults[key] for key, value in zip(design.keys, at, strict=True)
    )


def _gain(design: Design, at: Combination, alone: bool) -> Entry:
    """AVG minus that of the default, over the seeds that both have."""
    reference = design.points.get(_default_at(design, at))
    if alone or reference is None or reference is design.points[at]:
        return EMPTY
    ours, theirs = design.points[at].by_seed, reference.by_seed
    entry = summary({seed: ours[seed] - theirs[seed] for seed in ours if seed in theirs}, len(ours))
    if entry.mean is None:
        return entry
    return replace(entry, text=entry.text.replace(number(entry.mean), signed_number(entry.mean), 1))


def _remarks(designs: Sequence[Design], shown: Sequence[Row], total: int, hidden: int) -> Iterator[Footnote]:
    if any(DEFAULT in row.signs for row in shown):
        yield Footnote("what the row has without the sweep.", sign=DEFAULT)
    if any(BEST in row.signs for row in shown):
        of_problem = any(is_of_the_problem(key) for design in designs for key in design.keys)
        where = " of each setting of the data" if of_problem else ""
        yield Footnote(f"best on the test sets among the combinations{where}.", sign=BEST)
    yield Footnote("Δ default: AVG minus that of the default, over the seeds that both have.")
    absent = {
        design.row: settings_in_words({key: design.defaults[key] for key in away})
        for design in designs
        if design.defaults is not None
        and (away := [key for key in design.keys if design.defaults[key] not in design.levels(key)])
    }
    if absent:
        said = "; ".join(f"{row} {values}" for row, values in absent.items())
        yield Footnote(f"Defaults that were not run: {said}.")
    if hidden:
        yield Footnote(
            f"{hidden} of {counted(total, 'combination')} are neither a default nor a best and are left out "
            "here; the CSV file of this table has all of them, and tables/sweep.csv all cells."
        )


def _estimators(found: Sequence[Importance], rows: Sequence[Row]) -> Iterator[Footnote]:
    for estimator in dict.fromkeys(each.estimator for each in found):
        own = [
            f"{row.label} ({counted(len(each.design.measured), 'combination')})"
            for each, row in zip(found, rows, strict=True)
            if each.estimator == estimator
        ]
        yield Footnote(f"{estimator[0].upper()}{estimator[1:]}: {', '.join(own)}.")
    if any(each.estimator == "PED-ANOVA" for each in found):
        yield Footnote(
            "PED-ANOVA is an estimate for designs with missing combinations, from "
            f"{FEWEST_POINTS} combinations on; it has no shares of interactions."
        )
    if any(each.noise is not None for each in found):
        yield Footnote(
            f"{SEEDS}: the share that differences between seeds would give if no key had an effect; it is "
            "contained in the other columns, spread over all of them."
        )


def _share(share: float | None) -> Entry:
    return EMPTY if share is None else Entry(f"{100 * share:.1f}", mean=100 * share)


def _suites(runs: Sequence[Run]) -> str:
    return ", ".join(dict.fromkeys(run.suite.name for run in runs))
